// Libraries of models without a loss: they give the bits that the same declarations with one give, in every precision,
// and PyTorch's numbers.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "golden_self_attention.h"
#include "runtime/arena.hpp"
#include "runtime/philox.hpp"
#include "runtime/safetensors.hpp"
#include "small_vit_bf16.h"
#include "small_vit_inference_bf16.h"
#include "small_vit_inference_int8.h"
#include "small_vit_int8.h"
#include "tests/models/emitted_model.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"
#include "vit_mnist.h"
#include "vit_mnist_inference.h"
#include "vit_tiny_small.h"
#include "vit_tiny_small_inference.h"

/// All that the header of a model without a loss has of the table.
#define TESSERA_FORWARD_ONLY(name, NAME, golden_folder)                                                          \
  EmittedModel {                                                                                                 \
    .golden = golden_folder, .parameters = name##_parameters, .parameter_floats = NAME##_PARAMETER_FLOATS,       \
    .packed_forward_floats = NAME##_PACKED_FORWARD_FLOATS, .output_floats = NAME##_OUTPUT_FLOATS,                \
    .attention_floats = NAME##_ATTENTION_FLOATS, .alignment = NAME##_ALIGNMENT, .layers = name##_layers,         \
    .forward_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(b); },             \
    .inspect_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_INSPECT_SCRATCH_BYTES(b); },             \
    .isa = name##_isa, .pack_forward = name##_pack_forward, .forward = name##_forward, .inspect = name##_inspect \
  }

namespace tessera::test {
namespace {

using Floats = std::vector<float>;

/// A declaration with its recipe, and without.
struct Twins {
  std::string name;
  EmittedModel with, without;
  std::int64_t image_floats;
};
const Twins all_twins[] = {
    {"vit_mnist", TESSERA_EMITTED_MODEL(vit_mnist, VIT_MNIST, "mnist_vit", 0),
     TESSERA_FORWARD_ONLY(vit_mnist_inference, VIT_MNIST_INFERENCE, "mnist_vit"), VIT_MNIST_IMAGE_FLOATS},
    {"vit_tiny_small", TESSERA_EMITTED_MODEL(vit_tiny_small, VIT_TINY_SMALL, "vit_tiny_small", 0),
     TESSERA_FORWARD_ONLY(vit_tiny_small_inference, VIT_TINY_SMALL_INFERENCE, "vit_tiny_small"),
     VIT_TINY_SMALL_IMAGE_FLOATS},
    {"small_vit_bf16", TESSERA_EMITTED_MODEL(small_vit_bf16, SMALL_VIT_BF16, "", 0),
     TESSERA_FORWARD_ONLY(small_vit_inference_bf16, SMALL_VIT_INFERENCE_BF16, ""), SMALL_VIT_BF16_IMAGE_FLOATS},
    {"small_vit_int8", TESSERA_EMITTED_MODEL(small_vit_int8, SMALL_VIT_INT8, "", 0),
     TESSERA_FORWARD_ONLY(small_vit_inference_int8, SMALL_VIT_INFERENCE_INT8, ""), SMALL_VIT_INT8_IMAGE_FLOATS},
};

const EmittedModel self_attention =
    TESSERA_FORWARD_ONLY(golden_self_attention, GOLDEN_SELF_ATTENTION, "self_attention_2d");

/// What inference gives.
struct Answers {
  Floats outputs, maps, magnitudes;
};

runtime::Arena unwritten(std::int64_t floats) {
  runtime::Arena arena = runtime::Arena::of_floats(floats, 64);
  std::fill_n(arena.floats(), floats, NAN);
  return arena;
}

Answers run(const EmittedModel& m, const Floats& parameters, const Floats& images, std::int64_t batch) {
  const runtime::Arena packed = unwritten(m.packed_forward_floats);
  EXPECT_EQ(m.pack_forward(parameters.data(), packed.floats()), 0);
  const float* const unless_packed = m.packed_forward_floats ? nullptr : parameters.data();
  const auto floats = [&](std::int64_t of_image) { return Floats(static_cast<std::size_t>(batch * of_image), NAN); };
  Answers a{floats(m.output_floats), floats(m.attention_floats), floats(static_cast<std::int64_t>(m.layers.size()))};
  EXPECT_EQ(m.forward(unless_packed, packed.floats(), images.data(), batch, a.outputs.data(),
                      unwritten(m.forward_bytes(batch) / 4).data()),
            0);
  EXPECT_EQ(m.inspect(unless_packed, packed.floats(), images.data(), batch, a.maps.data(), a.magnitudes.data(),
                      unwritten(m.inspect_bytes(batch) / 4).data()),
            0);
  return a;
}

bool equal(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::int64_t count(const tessera_parameter& row) {
  std::int64_t all = 1;
  for (int d = 0; d < row.rank; ++d) all *= row.shape[d];
  return all;
}

/// Parameters of one model, as they lie in the other: by their keys.
Floats moved(const Floats& from, const EmittedModel& source, const EmittedModel& target) {
  Floats to(static_cast<std::size_t>(target.parameter_floats));
  EXPECT_EQ(source.parameters.size(), target.parameters.size());
  for (const tessera_parameter& row : target.parameters) {
    const auto same = std::find_if(source.parameters.begin(), source.parameters.end(),
                                   [&](const auto& p) { return std::strcmp(p.name, row.name) == 0; });
    if (same == source.parameters.end()) throw std::out_of_range(row.name);
    std::copy_n(from.begin() + same->offset, count(row), to.begin() + row.offset);
  }
  return to;
}

Floats noise(std::int64_t count, std::uint64_t seed) {
  runtime::Random random(seed, 0, 0);
  Floats numbers(static_cast<std::size_t>(count));
  for (float& x : numbers) x = static_cast<float>(random.uniform(-1, 1));
  return numbers;
}

runtime::Safetensors golden(const EmittedModel& m, const std::string& file) {
  return runtime::read_safetensors(std::string(paths::golden) + "/" + m.golden + "/" + file + ".safetensors");
}

/// The outputs for golden's parameters and images are PyTorch's.
void expect_golden(const EmittedModel& m) {
  const runtime::Safetensors file = golden(m, "params"), batch = golden(m, "batch");
  ASSERT_EQ(file.tensors.size(), m.parameters.size());
  Floats parameters(static_cast<std::size_t>(m.parameter_floats));
  for (const tessera_parameter& row : m.parameters) {
    const Floats numbers = file.at(row.name).floats();
    ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), count(row)) << row.name;
    std::copy(numbers.begin(), numbers.end(), parameters.begin() + row.offset);
  }
  const auto& images = batch.at(batch.tensors.contains("images") ? "images" : "x");
  const Floats found = run(m, parameters, images.floats(), images.shape[0]).outputs;
  const Floats expected = golden(m, "forward").at("outputs").floats();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-5) << i;
}

/// Chooses an instruction set; answers whether the model can run it.
bool choose(const EmittedModel& m, const std::string& isa) {
  setenv("TESSERA_ISA", isa.c_str(), 1);
  return m.isa() == isa;
}

/// Those of any precision; under an emulator of Arm, NEON alone.
std::vector<std::string> emitted_isas() {
  std::vector<std::string> names;
  for (const codegen::Isa& isa : codegen::isas)
    if (is_emitted(isa)) names.emplace_back(isa.name);
#if defined(__aarch64__)
  std::erase(names, "scalar");
#endif
  return names;
}
const std::vector<std::string> isas = emitted_isas();

class ForwardOnly : public testing::TestWithParam<std::string> {
 protected:
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    omp_set_num_threads(1);
  }
};

TEST_P(ForwardOnly, BitsAreThoseOfTheSameDeclarationWithALoss) {
  int ran = 0;
  for (const Twins& twins : all_twins) {
    if (!choose(twins.with, GetParam())) continue;
    ++ran;
    ASSERT_EQ(twins.without.isa(), GetParam());
    const Floats parameters = noise(twins.with.parameter_floats, 3), images = noise(5 * twins.image_floats, 4);
    const Answers expected = run(twins.with, parameters, images, 5);
    for (const int threads : {1, 3}) {
      omp_set_num_threads(threads);
      const Answers found = run(twins.without, moved(parameters, twins.with, twins.without), images, 5);
      EXPECT_TRUE(equal(found.outputs, expected.outputs)) << twins.name;
      EXPECT_TRUE(equal(found.maps, expected.maps)) << twins.name;
      EXPECT_TRUE(equal(found.magnitudes, expected.magnitudes)) << twins.name;
      EXPECT_TRUE(std::all_of(found.outputs.begin(), found.outputs.end(), [](float x) { return std::isfinite(x); }));
    }
  }
  if (ran == 0) GTEST_SKIP() << "this processor cannot run " << GetParam();
}

TEST_P(ForwardOnly, OutputsArePyTorchs) {
  int ran = 0;
  for (const EmittedModel* m : {&self_attention, &all_twins[0].without, &all_twins[1].without})
    if (choose(*m, GetParam())) expect_golden(*m), ++ran;
  if (ran == 0) GTEST_SKIP() << "no model in single precision is emitted for " << GetParam() << ", or none runs here";
}

INSTANTIATE_TEST_SUITE_P(Isas, ForwardOnly, testing::ValuesIn(isas), [](const auto& info) { return info.param; });

TEST(ForwardOnly, NeedsAsManyWeightsAsOneForwardPassReads) {
  for (const Twins& twins : all_twins) {
    EXPECT_EQ(twins.without.packed_forward_floats, twins.with.packed_forward_floats) << twins.name;
    EXPECT_EQ(twins.without.forward_bytes(7), twins.with.forward_bytes(7)) << twins.name;
  }
}

}  // namespace
}  // namespace tessera::test
