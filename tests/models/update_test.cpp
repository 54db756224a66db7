// An update packs what it updates: block after block, as the weights go by.
#include <ostream>
#include <span>
#include <tuple>

#include "deep.h"
#include "deep_in_odd_tiles.h"
#include "digit_probe.h"
#include "small_vit_bf16.h"
#include "small_vit_int8.h"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"
#include "vit_mnist.h"

namespace tessera::test {
namespace {

struct Updated {
  std::string name;
  std::vector<std::string> isas;
  std::span<const tessera_parameter> parameters;
  std::size_t parameter_floats, packed_floats, optimizer_floats;
  const char* (*isa)();
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, float*);
  int (*update)(float*, float*, const float*, float*, std::int64_t, float);
};

void PrintTo(const Updated& model, std::ostream* out) { *out << model.name; }

#define TESSERA_UPDATED(name, NAME, ...)                                                                           \
  Updated {                                                                                                        \
    #name, __VA_ARGS__, name##_parameters, NAME##_PARAMETER_FLOATS, NAME##_PACKED_FLOATS, NAME##_OPTIMIZER_FLOATS, \
        name##_isa, name##_init, name##_pack, name##_update                                                        \
  }
const Updated models[] = {
    TESSERA_UPDATED(vit_mnist, VIT_MNIST, instruction_sets),  // packs nothing
    TESSERA_UPDATED(deep, DEEP, instruction_sets),
    TESSERA_UPDATED(deep_in_odd_tiles, DEEP_IN_ODD_TILES, instruction_sets),
    TESSERA_UPDATED(small_vit_bf16, SMALL_VIT_BF16, instruction_sets_of(codegen::Precision::bf16)),
    TESSERA_UPDATED(small_vit_int8, SMALL_VIT_INT8, instruction_sets_of(codegen::Precision::int8)),
    TESSERA_UPDATED(digit_probe, DIGIT_PROBE, {"scalar", "avx2"}),  // AdamW with decay, clipped, averaged
};

std::size_t size_of(const tessera_parameter& row) {
  std::size_t size = 1;
  for (std::int32_t d = 0; d < row.rank; ++d) size *= static_cast<std::size_t>(row.shape[d]);
  return size;
}

class Update : public testing::TestWithParam<std::tuple<Updated, std::string>> {
 protected:
  void SetUp() override {
    const std::string& isa = std::get<1>(GetParam());
    setenv("TESSERA_ISA", isa.c_str(), 1);
    if (model_.isa() != isa) GTEST_SKIP() << "this processor cannot run " << isa;
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    omp_set_num_threads(1);
  }

  struct State {
    Floats parameters, packed, optimizer;
  };
  State start() const {
    State s{Floats(model_.parameter_floats), {}, Floats(model_.optimizer_floats)};
    EXPECT_EQ(model_.init(s.parameters.data(), 1), 0);
    s.packed = packed(s.parameters);
    return s;
  }
  Floats packed(const Floats& parameters) const {
    Floats panels(model_.packed_floats, NAN);
    EXPECT_EQ(model_.pack(parameters.data(), panels.data()), 0);
    return panels;
  }
  void update(State& s, const Floats& gradients, std::int64_t step, int threads) const {
    omp_set_num_threads(threads);
    ASSERT_EQ(model_.update(s.parameters.data(), s.packed.data(), gradients.data(), s.optimizer.data(), step, rate_),
              0);
  }
  /// Ones and twos of both signs; what lies between the parameters is zero.
  Floats gradients(std::uint64_t seed) const {
    Floats all(model_.parameter_floats);
    runtime::Random random(seed, 0, 1);
    for (const tessera_parameter& row : model_.parameters)
      for (std::size_t i = 0; i < size_of(row); ++i) {
        const std::uint32_t kind = random.below(4);
        all[static_cast<std::size_t>(row.offset) + i] = (kind & 1 ? 1.0f : -1.0f) * (kind & 2 ? 1.0f : 2.0f);
      }
    return all;
  }

  const Updated model_ = std::get<0>(GetParam());
  const float rate_ = 0.01f;
};

TEST_P(Update, LeavesPackedWhatPackingWouldMakeOfIt) {
  State alone = start(), together = start();
  for (std::int64_t step = 1; step <= 3; ++step) {
    const Floats before = alone.packed, slopes = gradients(static_cast<std::uint64_t>(step));
    update(alone, slopes, step, 1);
    update(together, slopes, step, 3);
    EXPECT_EQ(equal(alone.packed, before), before.empty()) << "step " << step;
    EXPECT_TRUE(equal(alone.packed, packed(alone.parameters))) << "step " << step;
    EXPECT_TRUE(equal(together.packed, alone.packed)) << "step " << step;
    EXPECT_TRUE(equal(together.parameters, alone.parameters)) << "step " << step;
    EXPECT_TRUE(equal(together.optimizer, alone.optimizer)) << "step " << step;
  }
}

// Adam's first step is as long as the learning rate, whatever the gradient; before it AdamW takes its share of what
// decays.
TEST_P(Update, ReachesEveryParameterOnceAndNothingBetweenThem) {
  State s = start();
  const Floats from = s.parameters, slopes = gradients(7);
  update(s, slopes, 1, 2);
  const bool decays = model_.name == "digit_probe";
  Floats expected(model_.parameter_floats);
  std::size_t kept = 0;
  for (const tessera_parameter& row : model_.parameters)
    for (std::size_t i = static_cast<std::size_t>(row.offset), end = i + size_of(row); i < end; ++i) {
      const float share = decays && row.decay ? 0.05f * rate_ : 0;
      expected[i] = from[i] * (1 - share) - std::copysign(rate_, slopes[i]);
      kept += share == 0;
    }
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(s.parameters[i], expected[i], 2e-6) << i;
  EXPECT_GT(kept, 0u);
}

TEST_P(Update, WantsRoomForWhatItPacks) {
  State s = start();
  const int code = model_.update(s.parameters.data(), nullptr, gradients(1).data(), s.optimizer.data(), 1, rate_);
  EXPECT_EQ(code == 0, s.packed.empty());
}

std::vector<std::tuple<Updated, std::string>> cases() {
  std::vector<std::tuple<Updated, std::string>> all;
  for (const Updated& model : models)
    for (const std::string& isa : isas(model.isas)) all.emplace_back(model, isa);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Update, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace tessera::test
