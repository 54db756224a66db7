// Emitted code against the interpreter and against central differences, for every model of generated_cases.hpp: every
// op's vector-Jacobian product in double, and what every instruction set makes of the same kernels in float.
#include <gtest/gtest.h>
#ifdef TESSERA_RANDOM_SPECS
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <ostream>
#include <set>

#include "codegen/isa.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/ops.hpp"
#include "dsl/graph/op_name.hpp"
#include "tests/kernels/generated_cases.hpp"
#include "tests/kernels/generated_model.hpp"

namespace tessera::test {
namespace {

/// Memory as the emitted functions want it: aligned, and no longer than they asked for. It starts as not-a-number, so
/// that reading what nobody wrote shows; and so does writing past the end.
template <class Real>
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) : reals_(static_cast<std::size_t>(bytes) / sizeof(Real)) {
    const std::size_t all = (reals_ + guard) * sizeof(Real);
    memory_.reset(static_cast<Real*>(::operator new(all, std::align_val_t(64))));
    std::fill_n(memory_.get(), reals_, Real(NAN));
    std::fill_n(memory_.get() + reals_, guard, Real(12345));
  }
  ~Scratch() {
    const Real* end = memory_.get() + reals_;
    EXPECT_TRUE(std::all_of(end, end + guard, [](Real r) { return r == Real(12345); }))
        << "written past the scratch memory";
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Real* get() { return memory_.get(); }

 private:
  static constexpr std::size_t guard = 64;
  struct Free {
    void operator()(Real* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::size_t reals_;
  std::unique_ptr<Real, Free> memory_;
};

/// What dropout draws from: all four words are in use.
constexpr std::uint64_t random_seed = 0x0123456789abcdef;
constexpr std::int64_t random_step = (std::int64_t{1} << 32) + 7;

/// A model's parameters, packed.
template <class Real>
class Packed : public Scratch<Real> {
 public:
  Packed(const GeneratedModel<Real>& model, const std::vector<Real>& arena)
      : Scratch<Real>(model.packed_reals * static_cast<std::int64_t>(sizeof(Real))) {
    EXPECT_EQ(model.pack(arena.data(), this->get()), 0);
  }
};

/// What a model makes of a batch.
template <class Real>
struct Results {
  std::vector<Real> forward, outputs, image_gradients, gradients;
  Real evaluated = NAN, loss = NAN;
};

/// Whether in this case what is computed of an image depends on the others of its batch.
bool sums_up_the_batch(const std::string& name) {
  return name.find("over_the_batch") != std::string::npos || name == "reduce_sum_over_everything" ||
         name == "sentence_attention" || name.ends_with("_without_microbatch");
}

bool is_random(const std::string& name) { return name.starts_with("fuzz_") || name.starts_with("spec_"); }

/// All declared models that have a name: of random ones their name says what they are.
std::vector<GeneratedCase> listed_cases() {
  std::vector<GeneratedCase> all = generated_cases();
#ifdef TESSERA_RANDOM_SPECS
  for (GeneratedCase& c : random_specs()) all.push_back(std::move(c));
#endif
  return all;
}

/// One case with its numbers, and the interpreter's answers.
class Fixture {
 public:
  Fixture(const std::string& name, std::int64_t batch) {
    sketch.batch = batch;
    if (name.starts_with("fuzz_")) fuzz_case(name).record(sketch);
    for (const GeneratedCase& c : listed_cases())
      if (c.name == name.substr(0, name.find("_without_"))) c.record(sketch);
    const graph::Graph joint = codegen::differentiate(sketch.graph, true);
    evaluated = interpret(joint, batch, sketch.given);
    Arrays with_random = sketch.given;
    with_random["random"] = {{4}, {0x89abcdef, 0x01234567, 7, 1}};
    // What dropout draws depends on the order of dropouts, and on what is left of their shapes.
    graph::Graph ordered = codegen::canonical_order(sketch.graph);
    if (!name.ends_with("_without_dead_slices")) ordered = codegen::eliminate_dead_slices(ordered);
    trained = interpret(codegen::differentiate(ordered, true), batch, with_random);
    for (const graph::Node& n : joint.nodes) drops = drops || n.op == graph::Op::dropout;
    labels.assign(static_cast<std::size_t>(batch), 0);
    if (auto at = sketch.given.find("labels"); at != sketch.given.end())
      labels.assign(at->second.numbers.begin(), at->second.numbers.end());
  }

  template <class Real>
  std::vector<Real> images() const {
    const std::vector<double>& numbers = sketch.given.at("images").numbers;
    return {numbers.begin(), numbers.end()};
  }
  /// The parameters, laid out as the model wants them.
  template <class Real>
  std::vector<Real> parameters(const GeneratedModel<Real>& model) const {
    std::vector<Real> arena(static_cast<std::size_t>(model.parameter_reals), Real(0));
    for (const tessera_parameter& row : model.parameters) {
      const std::vector<double>& numbers = sketch.given.at(row.name).numbers;
      std::copy(numbers.begin(), numbers.end(), arena.begin() + row.offset);
    }
    return arena;
  }

  template <class Real>
  Real loss(const GeneratedModel<Real>& model, const std::vector<Real>& arena) const {
    std::vector<Real> out(evaluated.at("outputs").numbers.size(), Real(NAN));
    Real loss = NAN;
    const std::vector<Real> in = images<Real>();
    Scratch<Real> scratch(model.evaluate_scratch_bytes(sketch.batch));
    EXPECT_EQ(model.evaluate(arena.data(), Packed<Real>(model, arena).get(), in.data(), labels.data(), sketch.batch,
                             out.data(), &loss, scratch.get()),
              0);
    return loss;
  }

  /// The loss of training, which is that of evaluation but for dropout.
  double training_loss(const GeneratedModel<double>& model, const std::vector<double>& arena) const {
    if (!drops) return loss(model, arena);
    std::vector<double> out(evaluated.at("outputs").numbers.size()), gradients(arena.size());
    double loss = NAN;
    const std::vector<double> in = images<double>();
    Scratch<double> scratch(model.train_scratch_bytes(sketch.batch));
    EXPECT_EQ(model.loss_and_gradients(arena.data(), Packed<double>(model, arena).get(), in.data(), labels.data(),
                                       sketch.batch, sketch.batch, random_seed, random_step, out.data(), &loss,
                                       gradients.data(), scratch.get()),
              0);
    return loss;
  }

  /// The gradients have the same bits with as few images at once as may be.
  template <class Real>
  void expect_same_in_groups(const GeneratedModel<Real>& model, const Results<Real>& all) const {
    const std::vector<Real> in = images<Real>(), arena = parameters(model);
    const std::int64_t few = (sketch.batch + 15) / 16;
    Scratch<Real> scratch(model.train_scratch_bytes(few));
    std::vector<Real> outputs(all.outputs.size(), Real(NAN)), gradients(arena.size(), Real(NAN));
    Real loss = NAN;
    const int code =
        model.loss_and_gradients(arena.data(), Packed<Real>(model, arena).get(), in.data(), labels.data(), sketch.batch,
                                 few, random_seed, random_step, outputs.data(), &loss, gradients.data(), scratch.get());
    constexpr int refused = 6;  // NAME_ERROR_AT_ONCE
    const bool needs_all = sums_up_the_batch(model.name) && few < sketch.batch;
    ASSERT_EQ(code, needs_all ? refused : 0);
    if (needs_all) return;
    const auto bytes = [](const std::vector<Real>& v) { return v.size() * sizeof(Real); };
    EXPECT_EQ(std::memcmp(outputs.data(), all.outputs.data(), bytes(outputs)), 0);
    EXPECT_EQ(std::memcmp(gradients.data(), all.gradients.data(), bytes(gradients)), 0);
    EXPECT_EQ(std::memcmp(&loss, &all.loss, sizeof loss), 0);
  }

  template <class Real>
  Results<Real> run(const GeneratedModel<Real>& model) const {
    const std::vector<Real> in = images<Real>(), arena = parameters(model);
    Results<Real> r;
    const std::size_t size = evaluated.at("outputs").numbers.size();
    r.forward.assign(size, Real(NAN));
    {
      Scratch<Real> scratch(model.forward_scratch_bytes(sketch.batch));
      EXPECT_EQ(model.forward(arena.data(), Packed<Real>(model, arena).get(), in.data(), sketch.batch, r.forward.data(),
                              scratch.get()),
                0);
    }
    r.evaluated = loss(model, arena);
    {
      Scratch<Real> scratch(model.train_scratch_bytes(sketch.batch));
      r.outputs.assign(size, Real(NAN));
      r.gradients.assign(arena.size(), Real(NAN));
      EXPECT_EQ(model.loss_and_gradients(arena.data(), Packed<Real>(model, arena).get(), in.data(), labels.data(),
                                         sketch.batch, sketch.batch, random_seed, random_step, r.outputs.data(),
                                         &r.loss, r.gradients.data(), scratch.get()),
                0);
    }
    expect_same_in_groups(model, r);
    Scratch<Real> scratch(model.input_gradient_scratch_bytes(sketch.batch));
    std::vector<Real> again(size, Real(NAN));
    Real loss = NAN;
    r.image_gradients.assign(in.size(), Real(NAN));
    EXPECT_EQ(model.input_gradient(arena.data(), Packed<Real>(model, arena).get(), in.data(), labels.data(),
                                   sketch.batch, again.data(), &loss, r.image_gradients.data(), scratch.get()),
              0);
    return r;
  }

  Sketch sketch;
  Arrays evaluated, trained;  ///< the interpreter's answers, without and with dropout
  bool drops = false;
  std::vector<std::int32_t> labels;
};

/// Whether each number is within `tolerance` of the wanted one, measured by the largest of them (or by one).
template <class Real>
void expect_near(const Real* found, const std::vector<double>& wanted, double tolerance, const std::string& what) {
  double scale = 1, most = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    scale = std::max(scale, std::fabs(wanted[i]));
    const double difference = std::fabs(static_cast<double>(found[i]) - wanted[i]);
    if (difference <= most) continue;
    most = difference;  // also when it is not a number
    at = i;
    if (std::isnan(most)) break;
  }
  EXPECT_LE(most, tolerance * scale) << what << ": element " << at << " is " << found[at] << ", not " << wanted[at];
}

template <class Real>
void expect_interpreted(const Fixture& f, const GeneratedModel<Real>& model, const Results<Real>& r, double tolerance) {
  expect_near(r.forward.data(), f.evaluated.at("outputs").numbers, tolerance, "outputs of forward");
  expect_near(r.outputs.data(), f.trained.at("outputs").numbers, tolerance, "outputs of loss_and_gradients");
  expect_near(&r.evaluated, f.evaluated.at("loss").numbers, tolerance, "loss of evaluate");
  expect_near(&r.loss, f.trained.at("loss").numbers, tolerance, "loss of loss_and_gradients");
  expect_near(r.image_gradients.data(), f.evaluated.at("images").numbers, tolerance, "gradient of the images");
  for (const tessera_parameter& row : model.parameters)
    expect_near(r.gradients.data() + row.offset, f.trained.at(row.name).numbers, tolerance,
                std::string("gradient of ") + row.name);
}

/// The gaps between the gradients are zero, so that an optimiser can run over the whole arena.
template <class Real>
void expect_zeros_between_the_gradients(const Fixture& f, const GeneratedModel<Real>& model, const Results<Real>& r) {
  std::vector<bool> gap(r.gradients.size(), true);
  for (const tessera_parameter& row : model.parameters)
    std::fill_n(gap.begin() + row.offset, f.sketch.given.at(row.name).numbers.size(), false);
  for (std::size_t i = 0; i < gap.size(); ++i) {
    if (!gap[i]) continue;
    EXPECT_EQ(r.gradients[i], 0) << "in the gap at " << i;
  }
}

struct Run {
  std::size_t model;  ///< index
  std::int64_t batch;
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << generated_doubles()[run.model].name << " with a batch of " << run.batch;
}

/// Models that are large only for the way in which their kernels are cut up: the interpreter alone is asked.
bool is_large(const std::string& name) {
  return name.find("by_blocks_of_queries") != std::string::npos || name.starts_with("attention_by_blocks") ||
         name.find("gradient_of_many") != std::string::npos;
}
/// The case itself is measured by differences.
bool lacks_a_pass(const std::string& name) { return name.find("_without_") != std::string::npos; }

std::vector<Run> runs(bool against_the_interpreter) {
  std::vector<Run> all;
  // Sums over the batch are made of 16 chunks: fewer images than chunks, and chunks of one and of two images.
  for (std::size_t m = 0; m < generated_doubles().size(); ++m)
    for (std::int64_t batch : {1, 3, 17}) {
      const std::string& name = generated_doubles()[m].name;
      if (against_the_interpreter ? !is_large(name) || batch == 1 : !is_large(name) && !lacks_a_pass(name))
        all.push_back({m, batch});
    }
  return all;
}

std::string run_name(const testing::TestParamInfo<Run>& info) {
  return generated_doubles()[info.param.model].name + "_batch_" + std::to_string(info.param.batch);
}

class Generated : public testing::TestWithParam<Run> {
 protected:
  const GeneratedModel<double>& in_double() const { return generated_doubles()[GetParam().model]; }
  const GeneratedModel<float>& in_float() const { return generated_floats()[GetParam().model]; }
  Fixture fixture{in_double().name, GetParam().batch};
};

using GeneratedGradient = Generated;
using GeneratedKernels = Generated;

TEST_P(GeneratedGradient, OfScalarKernelsInDoubleAgreesWithCentralDifferences) {
  constexpr double h = 1e-5;
  const GeneratedModel<double>& model = in_double();
  const Results<double> results = fixture.run(model);
  std::vector<double> arena = fixture.parameters(model);
  for (const tessera_parameter& row : model.parameters) {
    // Every element with a batch of 3, but of large parameters only some; with the other batches, which differ in their
    // chunks alone, a few of each parameter.
    const std::size_t size = fixture.sketch.given.at(row.name).numbers.size();
    const std::size_t stride = GetParam().batch != 3 ? std::max<std::size_t>(1, size / 12)
                               : size > 1200         ? size / 50
                                                     : 1;
    std::vector<double> gradients, slopes;
    for (std::size_t i = 0; i < size; i += stride) {
      const std::size_t at = static_cast<std::size_t>(row.offset) + i;
      const double kept = arena[at];
      double loss[2];
      for (int side : {0, 1}) {
        arena[at] = kept + (side ? h : -h);
        loss[side] = fixture.training_loss(model, arena);
      }
      arena[at] = kept;
      slopes.push_back((loss[1] - loss[0]) / (2 * h));
      gradients.push_back(results.gradients[at]);
    }
    expect_near(gradients.data(), slopes, 1e-6, row.name);
  }
}

TEST_P(GeneratedKernels, AgreeWithTheInterpreterInDoubleAndOnEveryInstructionSetInFloat) {
  const Results<double> doubles = fixture.run(in_double());
  // Sums of sums of random chains lose some digits.
  const double digits = is_random(in_double().name) ? 10 : 1;
  expect_interpreted(fixture, in_double(), doubles, digits * 1e-12);
  expect_zeros_between_the_gradients(fixture, in_double(), doubles);
  int compared = 0;
  for (const codegen::Isa& row : codegen::isas) {
    const std::string isa(row.name);
    SCOPED_TRACE(isa);
    setenv("TESSERA_ISA", isa.c_str(), 1);
    if (in_float().isa() == isa) {  // else this processor does not have it, or the models are not emitted for it
      const Results<float> floats = fixture.run(in_float());
      expect_interpreted(fixture, in_float(), floats, digits * 1e-4);
      expect_zeros_between_the_gradients(fixture, in_float(), floats);
      ++compared;
    }
    unsetenv("TESSERA_ISA");
  }
  EXPECT_GE(compared, 1);
}

#ifdef TESSERA_RANDOM_SPECS
/// |found - wanted| / |wanted|, where the wanted ones are not about zero.
template <class Real>
double distance(const Real* found, const std::vector<double>& wanted) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += std::pow(static_cast<double>(found[i]) - wanted[i], 2);
    size += wanted[i] * wanted[i];
  }
  return std::sqrt(difference / std::max(size, 1e-4 * static_cast<double>(wanted.size())));
}

bool same_bits(const Results<float>& a, const Results<float>& b) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  return same(a.forward, b.forward) && same(a.outputs, b.outputs) && same(a.gradients, b.gradients) &&
         same(a.image_gradients, b.image_gradients) && std::memcmp(&a.loss, &b.loss, sizeof a.loss) == 0;
}

/// Every instruction set that this processor has and the models are emitted for.
template <class Use>
void on_every_instruction_set(const GeneratedModel<float>& model, const Use& use) {
  for (const codegen::Isa& row : codegen::isas) {
    setenv("TESSERA_ISA", std::string(row.name).c_str(), 1);
    SCOPED_TRACE(std::string(row.name));
    if (model.isa() == row.name) use();
    unsetenv("TESSERA_ISA");
  }
}

TEST_P(GeneratedKernels, OfRandomModelsGiveTheSameBitsOnThreeThreads) {
  for (const auto& models : {generated_floats(), generated_bf16s(), generated_int8s(), generated_int4s()}) {
    const GeneratedModel<float>& model = models[GetParam().model];
    on_every_instruction_set(model, [&] {
      omp_set_num_threads(1);
      const Results<float> one = fixture.run(model);
      omp_set_num_threads(3);
      EXPECT_TRUE(same_bits(fixture.run(model), one));
      omp_set_num_threads(1);
    });
  }
}

// Rounded factors, through a chain of ops that may enlarge what rounding does: on the whole, not number by number.
TEST_P(GeneratedKernels, OfRandomModelsInLowPrecisionStayNearTheInterpreter) {
  for (const auto& [models, near] :
       {std::pair{generated_bf16s(), 0.15}, {generated_int8s(), 0.15}, {generated_int4s(), 0.6}}) {
    const GeneratedModel<float>& model = models[GetParam().model];
    const double most = near;
    on_every_instruction_set(model, [&] {
      const Results<float> r = fixture.run(model);
      EXPECT_LE(distance(r.forward.data(), fixture.evaluated.at("outputs").numbers), most);
      EXPECT_LE(distance(r.outputs.data(), fixture.trained.at("outputs").numbers), 0.15);
      for (const float gradient : r.gradients) EXPECT_TRUE(std::isfinite(gradient));
      std::vector<double> wanted;
      std::vector<float> found;
      for (const tessera_parameter& row : model.parameters) {
        const std::vector<double>& numbers = fixture.trained.at(row.name).numbers;
        wanted.insert(wanted.end(), numbers.begin(), numbers.end());
        found.insert(found.end(), r.gradients.begin() + row.offset,
                     r.gradients.begin() + row.offset + static_cast<std::ptrdiff_t>(numbers.size()));
      }
      EXPECT_LE(distance(found.data(), wanted), 0.3) << "of the gradients";
    });
  }
}
#endif

// An op without a case would first be computed by who declares a model with it.
TEST(GeneratedKernelsCases, HoldEveryElementwiseOp) {
  std::set<graph::Op> ops;
  for (const GeneratedCase& c : generated_cases()) {
    Sketch sketch;
    c.record(sketch);
    for (const graph::Node& n : sketch.graph.nodes) ops.insert(n.op);
  }
  for (const graph::Op op : codegen::elementwise_ops)
    EXPECT_TRUE(ops.contains(op)) << "no case of tests/kernels has " << graph::op_name(op);
}

INSTANTIATE_TEST_SUITE_P(Cases, GeneratedGradient, testing::ValuesIn(runs(false)), run_name);
INSTANTIATE_TEST_SUITE_P(Cases, GeneratedKernels, testing::ValuesIn(runs(true)), run_name);

}  // namespace
}  // namespace tessera::test
