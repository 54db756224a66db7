// The wrappers and the products on tensor cores on a GPU: part of gpu_check.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "tests/cuda/gpu/device_array.hpp"
#ifdef TESSERA_DEVICE_HEADER  // the CPU stands for the GPU
#include TESSERA_DEVICE_HEADER
#else
#include "codegen/cuda/device/cuda.h"
#endif

namespace {
#include "codegen/cuda/device/math.h"
#include "codegen/cuda/device/pair.h"
#include "codegen/cuda/device/tensor_product.h"
#include "codegen/cuda/device/attention.h"
#include "codegen/cuda/device/attention_gradient.h"
#include "codegen/cuda/device/warpgroup_product.h"
#include "tests/cuda/tensor_kernel.h"
#include "tests/cuda/attention_kernel.h"
#include "tests/cuda/attention_gradient_kernel.h"
#include "tests/cuda/warpgroup_kernel.h"
}  // namespace
#include "tests/cuda/tensor_cores.hpp"
#include "tests/cuda/attention_gradients.hpp"
#include "tests/cuda/warpgroups.hpp"

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
  if (!squares_are_stored<DeviceArray>(store_a_square, 11, 13)) {
    std::printf("sums that are stored by eight FAILED\n");
    good = false;
  }
  for (const HeadGradient& a : head_gradients) {
    const bool right = gives_gradients<DeviceArray>(a);
    if (!right) std::printf("attention's gradients of %d keys, %d wide FAILED\n", a.most_keys, a.width);
    good = right && good;
  }
  for (const HeadAgain& a : heads_again) {
    const bool same = gives_the_same_again<DeviceArray>(a);
    if (!same)
      std::printf("attention's p made again of %d keys, %d wide: OTHER BITS\n", a.stored.most_keys, a.stored.width);
    good = same && good;
  }
  if (!can_launch(give_box)) {
    std::printf("this GPU, or what was compiled for it, has no warpgroups: their products were not run\n");
    return good;
  }
  const std::string wrong_of_warpgroups = wrong_wrapper_of_warpgroups<DeviceArray>();
  std::printf("wrappers of warpgroups: %s\n",
              wrong_of_warpgroups.empty() ? "passed" : ("FAILED: " + wrong_of_warpgroups).c_str());
  good = wrong_of_warpgroups.empty() && good;
  for (const WarpgroupProduct& p : warpgroup_products) {
    const FourMatrices m = odd_sizes_for(p);
    const bool exact = product_by<DeviceArray>(p, m) == m.product();
    if (!exact) std::printf("the product by warpgroups in tiles of %d x %d FAILED\n", p.tile_rows, p.tile_columns);
    good = exact && good;
  }
  for (const SummingProduct& p : summing_products) {
    const FourMatrices m = odd_sizes_for(p.product);
    const bool exact = product_and_sums_by<DeviceArray>(p, m) == product_and_sums(p, m);
    if (!exact)
      std::printf("the product by warpgroups in tiles of %d x %d that sums rows FAILED\n", p.product.tile_rows,
                  p.product.tile_columns);
    good = exact && good;
  }
  return good;
}
