// Emitted models of depth: Hugging Face's numbers on each instruction set (tests/golden/dialects), in lower precision
// what is near single precision, and the same bits for any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "dialect_depth.h"
#include "runtime/safetensors.hpp"
#include "runtime/translation.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/models/precision_run.hpp"
#include "tests/paths.hpp"
#include "toy_depth.h"
#include "toy_depth_bf16.h"
#include "toy_depth_int8.h"

namespace tessera::test {
namespace {

struct DepthModel {
  std::int64_t parameter_floats, packed_floats, image_floats, output_floats;
  std::int64_t (*bytes)(std::int64_t batch);
  int (*init)(float* parameters, std::uint64_t seed);
  int (*pack)(const float* parameters, float* packed);
  int (*forward)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch);
};
#define DEPTH_MODEL(name, NAME)                                                                       \
  DepthModel {                                                                                        \
    NAME##_PARAMETER_FLOATS, NAME##_PACKED_FORWARD_FLOATS, NAME##_IMAGE_FLOATS, NAME##_OUTPUT_FLOATS, \
        [](std::int64_t b) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(b); }, name##_init,  \
        name##_pack_forward, name##_forward                                                           \
  }
const DepthModel golden = DEPTH_MODEL(dialect_depth, DIALECT_DEPTH), toy = DEPTH_MODEL(toy_depth, TOY_DEPTH),
                 toy_bf16 = DEPTH_MODEL(toy_depth_bf16, TOY_DEPTH_BF16),
                 toy_int8 = DEPTH_MODEL(toy_depth_int8, TOY_DEPTH_INT8);

Floats depths_of(const DepthModel& m, const Floats& parameters, const Floats& images, int threads) {
  omp_set_num_threads(threads);
  const auto batch = static_cast<std::int64_t>(images.size()) / m.image_floats;
  const runtime::Arena packed = runtime::Arena::of_floats(m.packed_floats, 64);
  std::fill_n(packed.floats(), m.packed_floats, NAN);
  EXPECT_EQ(m.pack(parameters.data(), packed.floats()), 0);
  Floats depths(static_cast<std::size_t>(batch * m.output_floats), NAN);
  EXPECT_EQ(m.forward(parameters.data(), packed.floats(), images.data(), batch, depths.data(),
                      scratch(m.bytes(batch)).data()),
            0);
  return depths;
}

class DepthOnIsa : public OnIsa {
  std::string isa() const override { return dialect_depth_isa(); }
};

TEST_P(DepthOnIsa, IsHuggingFaces) {
  const std::string folder = std::string(paths::golden) + "/dialects/hf_depth_anything/";
  const runtime::Safetensors file =
      runtime::in_timms_keys(runtime::read_safetensors(folder + "model.safetensors")).file;
  Floats parameters(DIALECT_DEPTH_PARAMETER_FLOATS, 0);
  for (const tessera_parameter& row : dialect_depth_parameters) {
    const Floats numbers = file.at(row.name).floats();
    std::copy(numbers.begin(), numbers.end(), parameters.begin() + row.offset);
  }
  const runtime::Safetensors io = runtime::read_safetensors(folder + "io.safetensors");
  const Floats expected = io.at("outputs").floats(), images = io.at("x").floats();
  const Floats found = depths_of(golden, parameters, images, 1);
  ASSERT_EQ(found.size(), expected.size());
  float apart = 0, largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    apart = std::max(apart, std::abs(found[i] - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  std::printf("  %.1e of the largest\n", static_cast<double>(apart / largest));
  EXPECT_LE(apart, 1e-5f * largest);
  EXPECT_TRUE(equal(depths_of(golden, parameters, images, 2), found));
}

INSTANTIATE_TEST_SUITE_P(Isas, DepthOnIsa, testing::ValuesIn(instruction_sets),
                         [](const auto& info) { return info.param; });

/// Starting values whose depths differ from pixel to pixel: convolutions of the size that keeps what they sum.
Floats toy_parameters() {
  Floats parameters(TOY_DEPTH_PARAMETER_FLOATS);
  EXPECT_EQ(toy_depth_init(parameters.data(), 3), 0);
  for (const tessera_parameter& row : toy_depth_parameters) {
    const std::string name = row.name;
    const bool branch = name.ends_with(".gamma");
    for (std::int64_t i = 0; row.rank == 4 && i < row.shape[0] * row.shape[1] * row.shape[2] * row.shape[3]; ++i)
      parameters[static_cast<std::size_t>(row.offset + i)] *= 1.7F;
    for (std::int64_t i = 0; branch && i < row.shape[0]; ++i)
      parameters[static_cast<std::size_t>(row.offset + i)] = 0.5F;
  }
  return parameters;
}

/// How far apart two maps are beside how much the second one varies.
double apart(const Floats& found, const Floats& expected) {
  double mean = 0, difference = 0, spread = 0;
  for (const float x : expected) mean += x / static_cast<double>(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double(found[i]) - expected[i], 2);
    spread += std::pow(expected[i] - mean, 2);
  }
  return std::sqrt(difference / spread);
}

class DepthOnIsaOfPrecision : public OnIsa {
  std::string isa() const override {
    return GetParam() == toy_depth_bf16_isa() ? toy_depth_bf16_isa() : toy_depth_int8_isa();
  }
};

TEST_P(DepthOnIsaOfPrecision, IsNearSinglePrecisionAndTheSameOnAnyNumberOfThreads) {
  Floats images(3 * TOY_DEPTH_IMAGE_FLOATS);
  runtime::Random random(5, 0, 0);
  for (float& pixel : images) pixel = static_cast<float>(random.uniform(-1, 1));
  choose("scalar");
  const Floats parameters = toy_parameters(), expected = depths_of(toy, parameters, images, 1);
  choose(GetParam());
  const auto [least, most] = std::minmax_element(expected.begin(), expected.end());
  EXPECT_GT(*most - *least, 0.1F) << "the depths are all alike";
  for (const auto& [model, isa, bound] :
       {std::tuple(&toy_bf16, toy_depth_bf16_isa(), 0.04), {&toy_int8, toy_depth_int8_isa(), 0.04}}) {
    if (isa != GetParam()) continue;
    const Floats found = depths_of(*model, parameters, images, 1);
    const double distance = apart(found, expected);
    std::printf("  %s: %.1e of the spread\n", model == &toy_bf16 ? "bf16" : "int8", distance);
    EXPECT_LE(distance, bound);
    EXPECT_GT(distance, 0);
    for (const int threads : {2, 3})
      EXPECT_TRUE(equal(depths_of(*model, parameters, images, threads), found)) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, DepthOnIsaOfPrecision, testing::ValuesIn([] {
                           std::set<std::string> all;
                           for (const codegen::Precision precision :
                                {codegen::Precision::bf16, codegen::Precision::int8})
                             for (const std::string& name : instruction_sets_of(precision)) all.insert(name);
                           return std::vector<std::string>(all.begin(), all.end());
                         }()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
