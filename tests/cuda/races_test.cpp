// ThreadSanitizer sees CUDA's threads as they are: it finds races that show in no order of them, and none in the
// headers of the device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sanitizer/common_interface_defs.h>

#include <string>
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
#include "planted_faults.hpp"
#include "planted_races.hpp"
#include "tests/cuda/racing_kernels.hpp"
// clang-format on

namespace {

using tessera::cuda_host::DeviceArray;
using tessera::cuda_host::Fault;
using tessera::cuda_host::Options;
using tessera::cuda_host::Schedule;

/// In each order of threads, with late copies: what is wrong with the kernel, or "".
template <class F>
std::vector<std::string> faults_of(F run) {
  std::vector<std::string> faults;
  for (const Options& options : tessera::cuda_host::all_options()) {
    if (!options.late_copies) continue;
    tessera::cuda_host::use(options);
    faults.emplace_back();
    try {
      run();
    } catch (const Fault& fault) {
      faults.back() = fault.what();
    }
  }
  tessera::cuda_host::use({});
  return faults;
}
template <class F>
void expect_no_race(F run, const std::string& name) {
  for (const std::string& fault : faults_of(run)) EXPECT_EQ(fault, "") << name;
}
/// What is wrong then; ThreadSanitizer's own reports, of 60 lines each, go nowhere.
template <class F>
std::vector<std::string> quiet_faults_of(F run) {
  static const std::intptr_t nowhere = open("/dev/null", O_WRONLY);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(nowhere));
  const std::vector<std::string> faults = faults_of(run);
  __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t{2}));
  return faults;
}
/// In each order of threads; where some orders show it `seen`, these may end with what they show.
template <class F>
void expect_race(F run, const std::string& name, bool seen = false) {
  bool raced = false;
  for (const std::string& fault : quiet_faults_of(run)) {
    const bool races = fault.find(" races with a") != std::string::npos;
    raced |= races;
    EXPECT_TRUE(races || (seen && !fault.empty())) << name << ": " << fault;
  }
  EXPECT_TRUE(raced) << name;
}

TEST(CudaRaces, WhatShowsInNoOrderOfThreadsIsFoundInEach) {
  for (const Racing& kernel : racing_kernels()) {
    expect_no_race([&] { EXPECT_EQ(kernel.run(false), kernel.wanted); }, kernel.name);
    expect_race([&] { kernel.run(true); }, kernel.name, kernel.seen);
  }
}

TEST(CudaRaces, AreToldWithBothPlacesInOneSentence) {
  const std::string fault = quiet_faults_of([] { racing_kernels().front().run(true); }).front();
  const std::size_t at = fault.find("racing_kernels.hpp:");
  ASSERT_NE(at, std::string::npos) << fault;
  const std::string place = fault.substr(at, fault.find(' ', at) - at);
  EXPECT_EQ(fault, "write: a write of 4 bytes at " + place + " races with a write of 4 bytes at " + place +
                       " by another thread; block (1, 0, 0), thread 0, fixed schedule, late copies");
}

bool misses_a_barrier(const std::string& name) { return name.starts_with("no_barrier_before"); }

TEST(CudaRaces, EveryBarrierThatIsMissingIsARace) {
  std::size_t count = 0;
  TensorProduct product = in_tiles<64, 32, 2, 2, true, true, false, true>;
  for (const auto& fault : planted) {
    if (!misses_a_barrier(fault.name)) continue;
    product.kernel = fault.eights;
    expect_race([&] { product_by<DeviceArray>(product, {64 + 37, 29, 4 * 32 + 19}); }, fault.name);
    ++count;
  }
  HeadAttention a = attention_in_blocks<4, 48, 32>;
  for (const auto& fault : planted_in_attention) {
    if (!misses_a_barrier(fault.name)) continue;
    a.kernel = fault.kernel;
    expect_race([&] { attends<DeviceArray>(a); }, fault.name);
    ++count;
  }
  HeadGradient gradient = gradient_of<48, 32>(77, 37);
  for (const auto& fault : planted_in_gradient) {
    if (!misses_a_barrier(fault.name)) continue;
    gradient.kernel = fault.kernel;
    expect_race([&] { gives_gradients<DeviceArray>(gradient); }, fault.name);
    ++count;
  }
  HeadAgain again = again_of<48, 32>(41, 37);
  for (const auto& fault : planted_in_again) {
    if (!misses_a_barrier(fault.name)) continue;
    again.kernel = fault.kernel;
    expect_race([&] { gives_the_same_again<DeviceArray>(again); }, fault.name);
    ++count;
  }
  WarpgroupProduct by_warpgroups = sound_warpgroups;
  for (const auto& fault : planted_in_warpgroups) {
    if (!misses_a_barrier(fault.name)) continue;
    by_warpgroups.kernel = fault.kernel;
    expect_race([&] { product_by<DeviceArray>(by_warpgroups, sizes_for_faults); }, fault.name);
    ++count;
  }
  EXPECT_EQ(count, 13u);
}

TEST(CudaRaces, NoneAreInTheHeadersOfTheDeviceInAnyTile) {
  tessera::cuda_host::use({Schedule::random, 3, true, true});
  for (const TensorProduct& p : tensor_products) EXPECT_NO_THROW(product_by<DeviceArray>(p, odd_sizes_for(p)));
  for (const HeadAttention& a : attentions) EXPECT_TRUE(attends<DeviceArray>(a));
  for (const HeadGradient& a : head_gradients) EXPECT_TRUE(gives_gradients<DeviceArray>(a));
  for (const HeadAgain& a : heads_again) EXPECT_TRUE(gives_the_same_again<DeviceArray>(a));
  for (const WarpgroupProduct& p : warpgroup_products) EXPECT_NO_THROW(product_by<DeviceArray>(p, odd_sizes_for(p)));
  for (const SummingProduct& p : summing_products)
    EXPECT_NO_THROW(product_and_sums_by<DeviceArray>(p, odd_sizes_for(p.product)));
  tessera::cuda_host::use({});
}

}  // namespace
