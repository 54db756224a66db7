// Models without a loss on the CPU that stands for a GPU: they give the bits that the same declarations with one give.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "toy_mnist_cuda.h"
#include "toy_mnist_inference_cuda.h"
#include "toy_wide_bf16_cuda.h"
#include "toy_wide_inference_bf16_cuda.h"

namespace {

using tessera::cuda_host::DeviceArray;
using Floats = std::vector<float>;

constexpr std::int64_t batch = 3;
constexpr std::size_t of_batch(std::int64_t of_image) { return static_cast<std::size_t>(batch * of_image); }

/// What a header for CUDA declares for inference, with or without a loss.
struct Table {
  std::span<const tessera_parameter> rows;
  std::int64_t parameter_floats, packed_bytes, image_floats, output_floats, map_floats, layers, forward_bytes,
      inspect_bytes;
  int (*init)(float*, std::uint64_t);
  int (*pack)(const float*, void*, void*);
  int (*forward)(const float*, const void*, const float*, std::int64_t, float*, void*, void*);
  int (*inspect)(const float*, const void*, const float*, std::int64_t, float*, float*, void*, void*);
};
#define TABLE(name, NAME)                                                                                            \
  Table {                                                                                                            \
    name##_parameters, NAME##_PARAMETER_FLOATS, NAME##_CUDA_PACKED_BYTES, NAME##_IMAGE_FLOATS, NAME##_OUTPUT_FLOATS, \
        NAME##_ATTENTION_FLOATS, NAME##_LAYERS, NAME##_CUDA_FORWARD_SCRATCH_BYTES(batch),                            \
        NAME##_CUDA_INSPECT_SCRATCH_BYTES(batch), name##_init, name##_cuda_pack, name##_cuda_forward,                \
        name##_cuda_inspect                                                                                          \
  }

/// The parameters of `source` as they lie in `target`, by their keys.
Floats moved(const Floats& from, const Table& source, const Table& target) {
  Floats to(static_cast<std::size_t>(target.parameter_floats));
  for (const tessera_parameter& row : target.rows)
    for (const tessera_parameter& same : source.rows) {
      if (std::strcmp(row.name, same.name) != 0) continue;
      std::int64_t count = 1;
      for (int d = 0; d < row.rank; ++d) count *= row.shape[d];
      for (std::int64_t i = 0; i < count; ++i)
        to[static_cast<std::size_t>(row.offset + i)] = from[static_cast<std::size_t>(same.offset + i)];
    }
  return to;
}

struct Answers {
  Floats outputs, maps, magnitudes;
};
Answers run(const Table& m, const Floats& parameters) {
  Floats images(of_batch(m.image_floats));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  DeviceArray<float> p(parameters), x(images), packed(static_cast<std::size_t>((m.packed_bytes + 3) / 4)),
      outputs(of_batch(m.output_floats)), maps(of_batch(m.map_floats)), magnitudes(of_batch(m.layers)),
      forward(static_cast<std::size_t>(m.forward_bytes / 4), true),
      inspect(static_cast<std::size_t>(m.inspect_bytes / 4), true);
  EXPECT_EQ(m.pack(p.data(), packed.data(), nullptr), 0);
  EXPECT_EQ(m.forward(p.data(), packed.data(), x.data(), batch, outputs.data(), forward.data(), nullptr), 0);
  EXPECT_EQ(
      m.inspect(p.data(), packed.data(), x.data(), batch, maps.data(), magnitudes.data(), inspect.data(), nullptr), 0);
  return {outputs.values(), maps.values(), magnitudes.values()};
}

void expect_same_bits(const Table& with, const Table& without) {
  Floats parameters(static_cast<std::size_t>(with.parameter_floats));
  ASSERT_EQ(with.init(parameters.data(), 7), 0);
  for (const bool warpgroups : {false, true}) {
    tessera::cuda_host::use({tessera::cuda_host::Schedule::fixed, 1, false, warpgroups});
    const Answers expected = run(with, parameters), found = run(without, moved(parameters, with, without));
    EXPECT_EQ(found.outputs, expected.outputs);
    EXPECT_EQ(found.maps, expected.maps);
    EXPECT_EQ(found.magnitudes, expected.magnitudes);
    for (const float x : found.outputs) EXPECT_EQ(x - x, 0) << "not a number";
  }
}

TEST(CudaInference, GivesTheBitsOfTheSameDeclarationWithALoss) {
  expect_same_bits(TABLE(toy_mnist, TOY_MNIST), TABLE(toy_mnist_inference, TOY_MNIST_INFERENCE));
}
TEST(CudaInference, GivesTheBitsOfTheSameDeclarationWithALossInBf16) {
  expect_same_bits(TABLE(toy_wide_bf16, TOY_WIDE_BF16), TABLE(toy_wide_inference_bf16, TOY_WIDE_INFERENCE_BF16));
}

}  // namespace
