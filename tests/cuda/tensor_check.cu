// The wrappers and the product on tensor cores on a GPU: part of gpu_check.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "tests/cuda/gpu/device_array.hpp"
#include "codegen/cuda/device/cuda.h"

namespace {
#include "codegen/cuda/device/math.h"
#include "codegen/cuda/device/tensor_product.h"
#include "codegen/cuda/device/attention.h"
#include "tests/cuda/tensor_kernel.h"
#include "tests/cuda/attention_kernel.h"
}  // namespace
#include "tests/cuda/tensor_cores.hpp"

bool tensor_cores_are_right() {
  using tessera::cuda_gpu::DeviceArray;
  const std::string wrong = wrong_wrapper<DeviceArray>();
  std::printf("wrappers: %s\n", wrong.empty() ? "passed" : ("FAILED: " + wrong).c_str());
  bool good = wrong.empty();
  for (const TensorProduct& p : tensor_products) {
    const Matrices m = odd_sizes_for(p);
    const bool exact = product_by<DeviceArray>(p, m) == m.product();
    if (!exact) std::printf("the product in tiles of %d x %d FAILED\n", p.tile_rows, p.tile_columns);
    good = exact && good;
  }
  for (const HeadAttention& a : attentions) {
    const bool right = attends<DeviceArray>(a);
    if (!right) std::printf("attention of %d keys, %d wide FAILED\n", a.most_keys, a.width);
    good = right && good;
  }
  return good;
}
