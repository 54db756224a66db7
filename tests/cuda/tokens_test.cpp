// A model that reads tokens, on the CPU that stands for a GPU, against PyTorch's numbers
// (tests/golden/vq/taming_small).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "tests/paths.hpp"
#include "toy_gpt_bf16_cuda.h"
#include "toy_gpt_cuda.h"

namespace {

using tessera::cuda_host::DeviceArray;
using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

constexpr std::int64_t batch = 4;

tessera::runtime::Safetensors golden(const std::string& file) {
  return tessera::runtime::read_safetensors(std::string(tessera::paths::golden) + "/vq/taming_small/" + file +
                                            ".safetensors");
}

std::string key(const tessera_parameter& row) { return std::string("transformer.") + row.name; }

double error(const float* mine, const Floats& theirs) {
  double differences = 0, all = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double d = double(mine[i]) - theirs[i];
    differences += d * d;
    all += double(theirs[i]) * theirs[i];
  }
  return std::sqrt(differences / all);
}

/// The emitted C API of a precision, and by how much it may be off.
struct Gpt {
  std::int64_t packed_bytes, forward_bytes, train_bytes;
  decltype(&toy_gpt_cuda_pack) pack;
  decltype(&toy_gpt_cuda_forward) forward;
  decltype(&toy_gpt_cuda_loss_and_gradients) loss_and_gradients;
  double of_logits, of_loss, of_gradients;
};
#define GPT(name, NAME, ...)                                                                                    \
  Gpt {                                                                                                         \
    NAME##_CUDA_PACKED_BYTES, NAME##_CUDA_FORWARD_SCRATCH_BYTES(batch), NAME##_CUDA_TRAIN_SCRATCH_BYTES(batch), \
        name##_cuda_pack, name##_cuda_forward, name##_cuda_loss_and_gradients, __VA_ARGS__                      \
  }

void expect_pytorchs(const Gpt& gpt) {
  const auto params = golden("params"), file = golden("batch"), forward = golden("forward"),
             backward = golden("backward");
  Floats start(TOY_GPT_PARAMETER_FLOATS);
  for (const tessera_parameter& row : toy_gpt_parameters)
    std::ranges::copy(params.at(key(row)).floats(), start.begin() + row.offset);
  const auto first = file.at("start").integers(), seen = file.at("seen").integers(),
             wanted = file.at("tokens").integers();
  Integers read;
  for (std::ptrdiff_t image = 0; image < batch; ++image) {
    read.push_back(static_cast<std::int32_t>(first[static_cast<std::size_t>(image)]));
    for (std::ptrdiff_t t = 0; t + 1 < TOY_GPT_TOKENS; ++t)
      read.push_back(static_cast<std::int32_t>(seen[static_cast<std::size_t>(image * TOY_GPT_TOKENS + t)]));
  }
  DeviceArray<float> p(start), packed(static_cast<std::size_t>(gpt.packed_bytes + 7) / 4),
      logits(batch * TOY_GPT_OUTPUT_FLOATS), loss(1), gradients(TOY_GPT_PARAMETER_FLOATS),
      scratch(static_cast<std::size_t>(gpt.forward_bytes) / 4, true),
      train(static_cast<std::size_t>(gpt.train_bytes) / 4, true);
  DeviceArray<std::int32_t> tokens(read), labels(Integers(wanted.begin(), wanted.end()));
  DeviceArray<tessera_cuda_step> step(std::vector<tessera_cuda_step>{{1, 1, 1e-3F, 0}});
  ASSERT_EQ(gpt.pack(p.data(), packed.data(), nullptr), 0);
  ASSERT_EQ(gpt.forward(p.data(), packed.data(), tokens.data(), batch, logits.data(), scratch.data(), nullptr), 0);
  EXPECT_LE(error(logits.data(), forward.at("logits").floats()), gpt.of_logits);
  ASSERT_EQ(gpt.loss_and_gradients(p.data(), packed.data(), tokens.data(), labels.data(), step.data(), batch,
                                   logits.data(), loss.data(), gradients.data(), train.data(), nullptr),
            0);
  EXPECT_NEAR(loss[0], backward.at("loss").floats()[0], gpt.of_loss);
  for (const tessera_parameter& row : toy_gpt_parameters) {
    if (key(row).ends_with("attn.key.bias")) continue;  // zero but for rounding: UNDETERMINED.txt
    EXPECT_LE(error(&gradients[static_cast<std::size_t>(row.offset)], backward.at(key(row)).floats()), gpt.of_gradients)
        << row.name;
  }
}

TEST(Tokens, LogitsAndGradientsArePyTorchs) { expect_pytorchs(GPT(toy_gpt, TOY_GPT, 1e-5, 1e-5, 1e-4)); }

TEST(Tokens, LogitsAndGradientsAreNearPyTorchsInBf16) {
  for (const bool warpgroups : {false, true}) {
    SCOPED_TRACE(warpgroups);
    tessera::cuda_host::use({tessera::cuda_host::Schedule::reversed, 1, true, warpgroups});
    expect_pytorchs(GPT(toy_gpt_bf16, TOY_GPT_BF16, 1e-2, 1e-2, 3e-2));
  }
  tessera::cuda_host::use({});
}

}  // namespace
