// How often ViT-Tiny in bf16, int8 and int4 answers what it answers in single precision: published weights, CIFAR-10's
// photographs brought to 224 x 224. Usage: agreement WEIGHTS CIFAR_FOLDER [IMAGES]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/cifar.hpp"
#include "runtime/error.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/progress.hpp"
#include "runtime/resize.hpp"
#include "runtime/safetensors.hpp"
#include "vit_tiny.h"
#include "vit_tiny_bf16.h"
#include "vit_tiny_int4.h"
#include "vit_tiny_int8.h"

namespace {

using tessera::runtime::Arena;

constexpr std::int64_t side = 224, pixels = 3 * side * side, classes = VIT_TINY_OUTPUT_FLOATS;

// As ViT-Tiny's recipe declares it.
constexpr tessera::runtime::Preprocessing vit_tiny_input{.mean = {0.5, 0.5, 0.5}, .deviation = {0.5, 0.5, 0.5}};

struct Model {
  const char* name;
  std::int64_t packed_floats, scratch_bytes;
  int (*pack)(const float*, float*);
  int (*forward)(const float*, const float*, const float*, std::int64_t, float*, void*);
};
const Model models[] = {
    {"fp32", VIT_TINY_PACKED_FORWARD_FLOATS, VIT_TINY_FORWARD_SCRATCH_BYTES(1), vit_tiny_pack_forward,
     vit_tiny_forward},
    {"bf16", VIT_TINY_BF16_PACKED_FORWARD_FLOATS, VIT_TINY_BF16_FORWARD_SCRATCH_BYTES(1), vit_tiny_bf16_pack_forward,
     vit_tiny_bf16_forward},
    {"int8", VIT_TINY_INT8_PACKED_FORWARD_FLOATS, VIT_TINY_INT8_FORWARD_SCRATCH_BYTES(1), vit_tiny_int8_pack_forward,
     vit_tiny_int8_forward},
    {"int4", VIT_TINY_INT4_PACKED_FORWARD_FLOATS, VIT_TINY_INT4_FORWARD_SCRATCH_BYTES(1), vit_tiny_int4_pack_forward,
     vit_tiny_int4_forward},
};

/// The starting values of the parameters are replaced by those of the file.
Arena read_weights(const char* path) {
  const tessera::runtime::Safetensors file = tessera::runtime::read_safetensors(path);
  Arena parameters = Arena::of_floats(VIT_TINY_PARAMETER_FLOATS, VIT_TINY_ALIGNMENT);
  vit_tiny_init(parameters.floats(), 1);
  for (const tessera_parameter& row : vit_tiny_parameters) {
    const tessera::runtime::Tensor& tensor = file.at(row.name);
    if (tensor.shape != tessera::runtime::Shape(row.shape, row.shape + row.rank))
      tessera::runtime::fail(path, ": ", row.name, " has another shape than ViT-Tiny's");
    const std::vector<float> values = tensor.floats();
    std::copy(values.begin(), values.end(), parameters.floats() + row.offset);
  }
  return parameters;
}

/// Whether the softmax of the logits gives one class at least a half.
bool is_sure(const std::vector<float>& logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(double(x) - most);
  return sum <= 2;
}

void compare(const char* weights, const char* folder, std::int64_t images) {
  const Arena parameters = read_weights(weights);
  tessera::runtime::Dataset data = tessera::runtime::read_cifar(folder, tessera::runtime::Split::test);
  data.keep(images);
  std::vector<Arena> packed, scratch;
  for (const Model& m : models) {
    packed.push_back(Arena::of_floats(m.packed_floats, VIT_TINY_ALIGNMENT));
    scratch.emplace_back(m.scratch_bytes, VIT_TINY_ALIGNMENT);
    if (m.pack(parameters.floats(), packed.back().floats())) tessera::runtime::fail(m.name, " cannot be packed");
  }
  const Arena input = Arena::of_floats(pixels, VIT_TINY_ALIGNMENT);
  constexpr std::size_t all = std::size(models);
  std::vector<float> outputs[all];
  std::int64_t changed[all] = {}, changed_where_sure[all] = {}, sure = 0;
  double error[all] = {}, size = 0;
  tessera::runtime::Counter counter("images", data.size());
  for (std::int64_t i = 0; i < data.size(); ++i, counter.add(1)) {
    const auto bytes = data.image(i);
    const tessera::runtime::Image small{data.channels, data.height, data.width, {bytes.begin(), bytes.end()}};
    const tessera::runtime::Image large = tessera::runtime::resized(small, side, side);
    tessera::runtime::normalize(large.pixels, large.channels, vit_tiny_input, input.floats());
    for (std::size_t m = 0; m < all; ++m) {
      outputs[m].assign(static_cast<std::size_t>(classes), 0);
      if (models[m].forward(parameters.floats(), packed[m].floats(), input.floats(), 1, outputs[m].data(),
                            scratch[m].data()))
        tessera::runtime::fail(models[m].name, " cannot be run");
      const bool other = tessera::runtime::largest(outputs[m]) != tessera::runtime::largest(outputs[0]);
      changed[m] += other;
      changed_where_sure[m] += other && is_sure(outputs[0]);
      for (std::size_t c = 0; c < outputs[m].size(); ++c)
        error[m] += std::pow(double(outputs[m][c]) - outputs[0][c], 2);
    }
    sure += is_sure(outputs[0]);
    for (const float x : outputs[0]) size += std::pow(double(x), 2);
  }
  const auto share = [](std::int64_t part, std::int64_t of) { return 100 * double(part) / double(of); };
  std::printf("%lld images, of %lld of which single precision is at least half sure\n",
              static_cast<long long>(data.size()), static_cast<long long>(sure));
  for (std::size_t m = 1; m < all; ++m)
    std::printf(
        "%s: another answer for %.2f %%, of the sure ones for %.2f %%; logits differ by %.2f %% of their size\n",
        models[m].name, share(changed[m], data.size()), share(changed_where_sure[m], sure),
        100 * std::sqrt(error[m] / size));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: agreement WEIGHTS CIFAR_FOLDER [IMAGES]\n");
    return 1;
  }
  try {
    compare(argv[1], argv[2], argc > 3 ? std::max(1L, std::atol(argv[3])) : 1000);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "agreement: %s\n", e.what());
    return 1;
  }
}
