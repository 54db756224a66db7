// Races that show in no order of threads, but for one that late arrivals show: why ThreadSanitizer is needed
// (races_test.cpp).
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/right_runs.hpp"

// In this order: each header of the device uses the ones before it.
// clang-format off
#include "tests/cuda/host/device.hpp"
#include "codegen/cuda/device/math.h"
#include "codegen/cuda/device/pair.h"
#include "codegen/cuda/device/reduce.h"
#include "codegen/cuda/device/product.h"
#include "codegen/cuda/device/tensor_product.h"
#include "codegen/cuda/device/attention.h"
#include "codegen/cuda/device/attention_gradient.h"
#include "codegen/cuda/device/warpgroup_product.h"
#include "tests/cuda/reduce_kernel.h"
#include "tests/cuda/product_kernel.h"
#include "tests/cuda/tensor_kernel.h"
#include "tests/cuda/attention_kernel.h"
#include "tests/cuda/attention_gradient_kernel.h"
#include "tests/cuda/warpgroup_kernel.h"
#include "tests/cuda/tensor_cores.hpp"
#include "tests/cuda/attention_gradients.hpp"
#include "tests/cuda/warpgroups.hpp"
#include "planted_races.hpp"
#include "tests/cuda/racing_kernels.hpp"
// clang-format on

namespace {

TEST(CudaHost, RacesMayShowInNoOrderOfThreads) {
  for (const Racing& kernel : racing_kernels())
    for (const bool race : {false, true}) {
      const auto right = tessera::cuda_host::right_runs(kernel.wanted, [&] { return kernel.run(race); });
      if (race && kernel.seen)
        EXPECT_LT(right, 8u) << kernel.name;
      else
        EXPECT_EQ(right, 8u) << kernel.name;
    }
}

}  // namespace
