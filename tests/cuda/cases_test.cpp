// Every op and many of their combinations as CUDA kernels, run on the CPU, against the interpreter of graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codegen/passes/differentiate.hpp"
#include "tests/cuda/cuda_case.hpp"
#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "tests/cuda/planned.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {
namespace {

using cuda_host::DeviceArray;
using cuda_host::Options;
using cuda_host::Schedule;

struct Run {
  std::size_t model;  ///< index
  std::int64_t batch;
};

void PrintTo(const Run& run, std::ostream* out) {
  *out << cuda_cases()[run.model].name << " with a batch of " << run.batch;
}

std::vector<Run> runs() {
  std::vector<Run> all;
  // Sums over the batch are made of 16 chunks: fewer images than chunks, and chunks of one and of two.
  // Whole blocks are there for their sizes, and take long; so does bf16, where single products do.
  for (std::size_t m = 0; m < cuda_cases().size(); ++m) {
    const std::string& name = cuda_cases()[m].name;
    all.push_back({m, 3});
    if (name.ends_with("_bf16") ? name.starts_with("einsum") : !name.starts_with("block_of")) all.push_back({m, 17});
  }
  return all;
}

/// Each number within 1e-4 of the wanted one, measured by the largest of them (or by one). Where factors are rounded,
/// all of them together: one that is nearly a tie falls to the other side by the last bit of a sum.
void expect_near(const float* found, const std::vector<double>& wanted, Operands factors, const std::string& what) {
  double scale = 1, differences = 0;
  for (double number : wanted) scale = std::max(scale, std::fabs(number));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (factors == Operands::exact) {
      ASSERT_NEAR(found[i], wanted[i], 1e-4 * scale) << what << ": element " << i;
    }
    differences += (found[i] - wanted[i]) * (found[i] - wanted[i]);
  }
  const double error = std::sqrt(differences / static_cast<double>(wanted.size())) / scale;
  EXPECT_LT(error, 3e-4) << what;
}

class CudaCases : public testing::TestWithParam<Run> {
 protected:
  CudaCases() {
    sketch.batch = batch;
    for (const GeneratedCase& c : generated_cases())
      if (c.name == model.name || c.name + "_bf16" == model.name) c.record(sketch);
    factors = model.name.ends_with("_bf16") ? Operands::bf16 : Operands::exact;
    Arrays with_random = sketch.given;
    with_random["random"] = {{4}, {0x89abcdef, 0x01234567, 7, 1}};
    if (factors == Operands::exact) {
      const graph::Graph joint = codegen::differentiate(sketch.graph, true);
      forward = pixels = interpret(joint, batch, sketch.given);
      trained = interpret(joint, batch, with_random);
      return;
    }
    const auto planned = [&](codegen::ProgramKind kind, const Arrays& with) {
      return interpret_planned(sketch.graph, kind, batch, with);
    };
    forward = planned(codegen::ProgramKind::forward, sketch.given);
    trained = planned(codegen::ProgramKind::loss_and_gradients, with_random);
    pixels = planned(codegen::ProgramKind::input_gradient, sketch.given);
  }

  void run(const Options& options) const {
    cuda_host::use(options);
    std::vector<float> arena(static_cast<std::size_t>(model.parameter_floats));
    for (const tessera_parameter& row : model.parameters) {
      const std::vector<double>& numbers = sketch.given.at(row.name).numbers;
      std::copy(numbers.begin(), numbers.end(), arena.begin() + row.offset);
    }
    const std::vector<double>& given = sketch.given.at("images").numbers;
    std::vector<std::int32_t> classes(static_cast<std::size_t>(batch));
    if (auto at = sketch.given.find("labels"); at != sketch.given.end())
      classes.assign(at->second.numbers.begin(), at->second.numbers.end());
    DeviceArray<float> parameters(arena), images(std::vector<float>(given.begin(), given.end()));
    DeviceArray<std::int32_t> labels(classes);
    DeviceArray<std::uint8_t> packed(static_cast<std::size_t>(model.packed_bytes));
    ASSERT_EQ(model.pack(parameters.data(), packed.data(), nullptr), 0);
    DeviceArray<tessera_cuda_step> step(std::vector<tessera_cuda_step>{{0x0123456789abcdef, 0x100000007, 0, 0}});
    auto floats = [](std::int64_t bytes) { return static_cast<std::size_t>(bytes) / sizeof(float); };
    const std::size_t size = forward.at("outputs").numbers.size();
    DeviceArray<float> outputs(size), loss(1), gradients(arena.size()), image_gradients(given.size());
    {
      DeviceArray<float> scratch(floats(model.forward_scratch_bytes(batch)));
      ASSERT_EQ(model.forward(parameters.data(), packed.data(), images.data(), batch, outputs.data(), scratch.data(),
                              nullptr),
                0);
      expect_near(outputs.data(), forward.at("outputs").numbers, factors, "outputs of forward");
    }
    {
      DeviceArray<float> scratch(floats(model.train_scratch_bytes(batch)));
      ASSERT_EQ(model.loss_and_gradients(parameters.data(), packed.data(), images.data(), labels.data(), step.data(),
                                         batch, outputs.data(), loss.data(), gradients.data(), scratch.data(), nullptr),
                0);
      expect_near(outputs.data(), trained.at("outputs").numbers, factors, "outputs of loss_and_gradients");
      expect_near(loss.data(), trained.at("loss").numbers, factors, "loss");
      for (const tessera_parameter& row : model.parameters)
        expect_near(gradients.data() + row.offset, trained.at(row.name).numbers, factors,
                    std::string("gradient of ") + row.name);
    }
    DeviceArray<float> scratch(floats(model.input_gradient_scratch_bytes(batch)));
    ASSERT_EQ(model.input_gradient(parameters.data(), packed.data(), images.data(), labels.data(), batch,
                                   outputs.data(), loss.data(), image_gradients.data(), scratch.data(), nullptr),
              0);
    expect_near(image_gradients.data(), pixels.at("images").numbers, factors, "gradient of the images");
  }

  const CudaCase& model = cuda_cases()[GetParam().model];
  const std::int64_t batch = GetParam().batch;
  Sketch sketch;
  Operands factors;
  Arrays forward, trained, pixels;  ///< the interpreter's answers; of `trained`, with dropout
};

TEST_P(CudaCases, AgreeWithTheInterpreterInEveryOrderOfThreads) {
  run({Schedule::fixed, 1, false});
  // What differs with a larger batch is the number of blocks and chunks, which know nothing of each other.
  if (batch == 3) {
    run({Schedule::reversed, 1, true});
    run({Schedule::random, 5, false});
  }
  if (model.by_warpgroups) {
    run({Schedule::fixed, 1, false, true});
    run({Schedule::random, 5, true, true});
  }
  cuda_host::use({});
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaCases, testing::ValuesIn(runs()), [](const testing::TestParamInfo<Run>& info) {
  return cuda_cases()[info.param.model].name + "_batch_" + std::to_string(info.param.batch);
});

}  // namespace
}  // namespace tessera::test
