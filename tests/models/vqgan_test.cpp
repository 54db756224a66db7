// VQGAN as emitted inference programs, on PyTorch's numbers (tests/golden/vq/vqgan_small), for each instruction set
// that this processor has, with one and with three threads.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/safetensors.hpp"
#include "small_vqgan.h"
#include "small_vqgan_decode.h"
#include "small_vqgan_encode.h"
#include "tests/models/emitted_model.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

using Floats = std::vector<float>;

#define TESSERA_VQGAN_PROGRAM(name, NAME)                                                                     \
  EmittedModel {                                                                                              \
    .golden = "vq/vqgan_small", .parameters = name##_parameters, .parameter_floats = NAME##_PARAMETER_FLOATS, \
    .packed_forward_floats = NAME##_PACKED_FORWARD_FLOATS, .output_floats = NAME##_OUTPUT_FLOATS,             \
    .alignment = NAME##_ALIGNMENT, .layers = name##_layers,                                                   \
    .forward_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(b); },          \
    .isa = name##_isa, .pack_forward = name##_pack_forward, .forward = name##_forward                         \
  }

const EmittedModel reconstruct = TESSERA_VQGAN_PROGRAM(small_vqgan, SMALL_VQGAN);
const EmittedModel encode = TESSERA_VQGAN_PROGRAM(small_vqgan_encode, SMALL_VQGAN_ENCODE);
const EmittedModel decode = TESSERA_VQGAN_PROGRAM(small_vqgan_decode, SMALL_VQGAN_DECODE);

runtime::Safetensors golden(const std::string& file) {
  return runtime::read_safetensors(std::string(paths::golden) + "/vq/vqgan_small/" + file + ".safetensors");
}

class Vqgan : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    setenv("TESSERA_ISA", GetParam().c_str(), 1);
    if (reconstruct.isa() != GetParam()) GTEST_SKIP() << "this processor cannot run " << GetParam();
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    set_threads(1);
  }

  static void set_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#endif
  }

  /// The outputs for golden's parameters.
  Floats run(const EmittedModel& m, const Floats& images) const {
    Floats parameters(static_cast<std::size_t>(m.parameter_floats));
    for (const tessera_parameter& row : m.parameters) {
      const runtime::Tensor& tensor = params.at(row.name);
      EXPECT_EQ(tensor.shape, std::vector<std::int64_t>(row.shape, row.shape + row.rank)) << row.name;
      const Floats numbers = tensor.floats();
      std::copy(numbers.begin(), numbers.end(), parameters.begin() + row.offset);
    }
    const auto unwritten = [](std::int64_t floats) {
      runtime::Arena arena = runtime::Arena::of_floats(floats, 64);
      std::fill_n(arena.floats(), floats, NAN);
      return arena;
    };
    const runtime::Arena packed = unwritten(m.packed_forward_floats);
    EXPECT_EQ(m.pack_forward(parameters.data(), packed.floats()), 0);
    Floats outputs(static_cast<std::size_t>(batch * m.output_floats), NAN);
    EXPECT_EQ(m.forward(m.packed_forward_floats ? nullptr : parameters.data(), packed.floats(), images.data(), batch,
                        outputs.data(), unwritten(m.forward_bytes(batch) / 4).data()),
              0);
    return outputs;
  }

  static void expect_near(const Floats& found, const Floats& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    float largest = 0;
    for (const float number : wanted) largest = std::max(largest, std::fabs(number));
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1e-5F * largest) << i;
  }

  const runtime::Safetensors params = golden("params"), forward = golden("forward");
  const Floats images = golden("batch").at("images").floats();
  const std::int64_t batch = forward.at("reconstruction").shape.at(0);
  const Floats reconstruction = forward.at("reconstruction").floats();

  Floats indices() const {
    const std::vector<std::int64_t> whole = forward.at("indices").integers();
    return {whole.begin(), whole.end()};
  }
};

TEST_P(Vqgan, ImagesAreReconstructedAsByPyTorch) { expect_near(run(reconstruct, images), reconstruction); }

TEST_P(Vqgan, TokensArePyTorchs) { EXPECT_EQ(run(encode, images), indices()); }

TEST_P(Vqgan, TokensBecomeTheSameImages) { expect_near(run(decode, indices()), reconstruction); }

TEST_P(Vqgan, BitsDoNotDependOnTheNumberOfThreads) {
  const Floats one = run(reconstruct, images);
  set_threads(3);
  const Floats three = run(reconstruct, images);
  EXPECT_EQ(std::memcmp(one.data(), three.data(), one.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Isas, Vqgan, testing::ValuesIn(instruction_sets), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera::test
