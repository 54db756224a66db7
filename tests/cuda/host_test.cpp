// The host execution of kernels is itself tested: every operation against its definition, and every planted fault is
// found.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/right_runs.hpp"

// In this order: each header of the device uses the ones before it.
// clang-format off
#include "tests/cuda/host/device.hpp"
#include "codegen/cuda/device/math.h"
#include "codegen/cuda/device/pair.h"
#include "codegen/cuda/device/vector.h"
#include "codegen/cuda/device/reduce.h"
#include "codegen/cuda/device/product.h"
#include "codegen/cuda/device/tensor_product.h"
#include "codegen/cuda/device/attention.h"
#include "codegen/cuda/device/attention_gradient.h"
#include "codegen/cuda/device/warpgroup_product.h"
#include "tests/cuda/reduce_kernel.h"
#include "tests/cuda/vector_kernel.h"
#include "tests/cuda/product_kernel.h"
#include "tests/cuda/tensor_kernel.h"
#include "tests/cuda/attention_kernel.h"
#include "tests/cuda/attention_gradient_kernel.h"
#include "tests/cuda/warpgroup_kernel.h"
#include "tests/cuda/tensor_cores.hpp"
#include "tests/cuda/attention_gradients.hpp"
#include "tests/cuda/row_sums.hpp"
#include "tests/cuda/warpgroups.hpp"
#include "planted_faults.hpp"
// clang-format on

namespace {

using tessera::cuda_host::all_options;
using tessera::cuda_host::always_right;
using tessera::cuda_host::DeviceArray;
using tessera::cuda_host::Fault;
using tessera::cuda_host::Options;
using tessera::cuda_host::right_runs;
using tessera::cuda_host::Schedule;

std::uint16_t to_bf16(float x) {  // exact for the small integers of these tests
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

std::string fault_of(void (*kernel)(float*), unsigned threads) {
  DeviceArray<float> numbers(64);
  try {
    launch_named("planted", kernel, dim3(1), dim3(threads), 0, nullptr, numbers.data());
  } catch (const Fault& fault) {
    return fault.what();
  }
  return "";
}

// ---- sums -------------------------------------------------------------------------------------------------------

template <bool without_barrier>
void sum_of_block(const float* x, float* sums, int count) {
  real* const of_warp = shared_memory<real>();
  real sum = 0;
  for (int i = thread_x(); i < count; i += threads()) sum += x[i];
  sum = warp_sum(sum);
  if (thread_x() % 32 == 0) of_warp[thread_x() / 32] = sum;
  if (!without_barrier) barrier();
  real all = 0;
  for (int warp = 0; warp < threads() / 32; ++warp) all += of_warp[warp];
  sums[block_x() * threads() + thread_x()] = all;
}

template <bool without_barrier>
std::size_t right_sums() {
  const std::vector<float> wanted(2 * 128, 500500.0f);
  return right_runs(wanted, [&] {
    DeviceArray<float> x(1000), sums(2 * 128);
    for (int i = 0; i < 1000; ++i) x[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
    launch(sum_of_block<without_barrier>, dim3(2), dim3(128), 4 * sizeof(float), nullptr, x.data(), sums.data(), 1000);
    return sums.values();
  });
}

TEST(CudaHost, ASumOverABlockIsTheSameInEveryOrderOfItsThreads) { EXPECT_EQ(right_sums<false>(), 8u); }
TEST(CudaHost, ASumWithoutItsBarrierIsFoundInEveryOrder) { EXPECT_EQ(right_sums<true>(), 0u); }

void reduce_twice(float* out) {
  const real sum = block_sum(static_cast<real>(thread_x()));
  const real most = block_maximum(static_cast<real>(thread_x() % 50));
  out[thread_x()] = sum + most / 64;
}
TEST(CudaHost, BlockSumAndMaximumFollowEachOtherInTheSameSharedMemory) {
  const std::vector<float> wanted(96, 4560 + 49.0f / 64);
  EXPECT_EQ(right_runs(wanted,
                       [] {
                         DeviceArray<float> out(96);
                         launch(reduce_twice, dim3(1), dim3(96), 3 * sizeof(float), nullptr, out.data());
                         return out.values();
                       }),
            8u);
}

TEST(CudaHost, SumsOverRowsAreTheSameInEveryOrderOfThreads) { EXPECT_EQ(right_sums_over_rows(sum_rows), 8u); }
TEST(CudaHost, EveryFaultPlantedInSumsOverRowsIsFound) {
  for (const auto& fault : planted_in_reduce) EXPECT_LT(right_sums_over_rows(fault.kernel), 8u) << fault.name;
}

TEST(CudaHost, SumsOverGroupsOfEightAreOfEachLaneByItself) { EXPECT_EQ(right_sums_over_groups(), 8u); }

TEST(CudaHost, VectorsAreLoadedAndStoredWhereverTheCallersMemoryBegins) {
  for (const int shift : {0, 1, 2, 3, 4}) {
    DeviceArray<float> from(64 + 8), to(64 + 8);
    DeviceArray<bf16> rounded_to(64 + 8), back(64 + 8);
    for (int i = 0; i < 72; ++i) {
      from.data()[i] = static_cast<float>(i + 1);
      to.data()[i] = 0;
      rounded_to.data()[i] = back.data()[i] = {0};
    }
    launch_named("copy_vectors", copy_vectors, dim3(1), dim3(8), 0, nullptr, from.data() + shift, to.data() + shift,
                 rounded_to.data() + shift, back.data() + shift);
    for (int i = 0; i < 72; ++i) {
      const float wanted = i < shift || i >= shift + 64 ? 0 : static_cast<float>(i + 1);
      EXPECT_EQ(to.data()[i], wanted) << shift << ", " << i;
      EXPECT_EQ(rounded_to.data()[i].bits, to_bf16(wanted)) << shift << ", " << i;
      EXPECT_EQ(back.data()[i].bits, to_bf16(wanted)) << shift << ", " << i;
    }
  }
}

TEST(CudaHost, UnrolledStepsAreAllThereOnceAndInTheirOrder) { EXPECT_EQ(right_unrolled_steps(), 8u); }

void reduce_over_warps(float* out) {
  const real sum = sum_over_warps(static_cast<real>(thread_x()));
  const real most = maximum_over_warps(static_cast<real>(thread_x() * 7 % 96));
  out[thread_x()] = sum + most / 128;
}
TEST(CudaHost, SumAndMaximumOverWarpsAreOfEachLaneByItself) {
  std::vector<float> wanted;
  for (int thread = 0; thread < 96; ++thread) {
    const int lane = thread % 32, most = std::max({lane * 7 % 96, (lane + 32) * 7 % 96, (lane + 64) * 7 % 96});
    wanted.push_back(static_cast<float>(3 * lane + 96) + static_cast<float>(most) / 128);
  }
  EXPECT_EQ(right_runs(wanted,
                       [] {
                         DeviceArray<float> out(96);
                         launch(reduce_over_warps, dim3(1), dim3(96), 96 * sizeof(float), nullptr, out.data());
                         return out.values();
                       }),
            8u);
}

// ---- matrix products --------------------------------------------------------------------------------------------

template <int tile_rows, int tile_columns, int of_thread, bool left_deep, bool right_deep>
void product_is_exact() {
  const Matrices m{37, 29, 19};
  EXPECT_EQ(right_runs(
                m.product(),
                [&] {
                  DeviceArray<float> left(static_cast<std::size_t>(m.rows * m.depth)),
                      right(static_cast<std::size_t>(m.columns * m.depth)),
                      out(static_cast<std::size_t>(m.rows * m.columns));
                  for (int k = 0; k < m.depth; ++k) {
                    for (int row = 0; row < m.rows; ++row)
                      left.data()[left_deep ? row * m.depth + k : k * m.rows + row] = m.left(row, k);
                    for (int column = 0; column < m.columns; ++column)
                      right.data()[right_deep ? column * m.depth + k : k * m.columns + column] = m.right(column, k);
                  }
                  const dim3 grid(static_cast<unsigned>((m.rows + tile_rows - 1) / tile_rows),
                                  static_cast<unsigned>((m.columns + tile_columns - 1) / tile_columns));
                  launch((single_precision<tile_rows, tile_columns, of_thread, left_deep, right_deep>), grid,
                         dim3(tile_rows * tile_columns / of_thread / of_thread), product_bytes(tile_rows, tile_columns),
                         nullptr, left.data(), right.data(), out.data(), m.rows, m.columns, m.depth);
                  return out.values();
                }),
            8u);
}
TEST(CudaHost, TheProductsTilesGiveExactSumsOfWholeNumbersForEveryStorageOrder) {
  product_is_exact<16, 16, 2, true, true>();
  product_is_exact<32, 32, 4, false, true>();
  product_is_exact<16, 64, 4, true, false>();
  product_is_exact<64, 16, 4, false, false>();
}

// ---- on tensor cores --------------------------------------------------------------------------------------------

TEST(CudaHost, TheWrappersGiveWhatThePtxIsaSaysLaneByLane) {
  for (const Options& options : all_options()) {
    tessera::cuda_host::use(options);
    EXPECT_EQ(wrong_wrapper<DeviceArray>(), "");
  }
  tessera::cuda_host::use({});
}

std::size_t right_runs_of(const TensorProduct& p, const Matrices& m) {
  return right_runs(m.product(), [&] { return product_by<DeviceArray>(p, m); });
}

TEST(CudaHost, TensorCoresGiveExactSumsOfWholeNumbersInEveryTileAndStorageOrderWithoutBankConflicts) {
  const std::int64_t conflicts = tessera::cuda_host::bank_conflicts();
  for (const TensorProduct& p : tensor_products)
    EXPECT_EQ(right_runs_of(p, odd_sizes_for(p)), 8u) << p.tile_rows << " x " << p.tile_columns;
  EXPECT_EQ(tessera::cuda_host::bank_conflicts(), conflicts);
}

TEST(CudaHost, EveryFaultPlantedInTheProductOnTensorCoresIsFound) {
  // The last of five steps lies where the sums will.
  const Matrices m{64 + 37, 29, 4 * 32 + 19};
  TensorProduct eights = in_tiles<64, 32, 2, 2, true, true, false, true>,
                numbers = in_tiles<64, 32, 2, 2, true, false, false, false>;
  ASSERT_EQ(right_runs_of(eights, m), 8u);
  ASSERT_EQ(right_runs_of(numbers, m), 8u);
  for (const auto& fault : planted) {
    eights.kernel = fault.eights;
    numbers.kernel = fault.numbers;
    EXPECT_LT(right_runs_of(eights, m) + right_runs_of(numbers, m), 16u) << fault.name;
  }
}
std::size_t right_runs_of(const HeadAttention& a) {
  return right_runs({1}, [&] { return std::vector<float>{attends<DeviceArray>(a) ? 1.0f : 0.0f}; });
}
std::size_t right_runs_of(const HeadGradient& a) {
  return right_runs({1}, [&] { return std::vector<float>{gives_gradients<DeviceArray>(a) ? 1.0f : 0.0f}; });
}
TEST(CudaHost, AttentionIsTheSoftmaxOfItsScoresAndTheMixOfValuesWithoutBankConflicts) {
  const std::int64_t conflicts = tessera::cuda_host::bank_conflicts();
  for (const HeadAttention& a : attentions)
    EXPECT_EQ(right_runs_of(a), 8u) << a.most_keys << " keys, " << a.width << " wide";
  EXPECT_EQ(tessera::cuda_host::bank_conflicts(), conflicts);
}
std::size_t right_squares(decltype(&store_a_square) kernel) {
  return right_runs({1}, [&] {
    bool right = true;
    for (const auto& [rows, columns] : {std::pair{16, 16}, {16, 9}, {11, 8}, {5, 13}})
      right = right && squares_are_stored<DeviceArray>(kernel, rows, columns);
    return std::vector<float>{right ? 1.0f : 0.0f};
  });
}
TEST(CudaHost, SumsAreStoredOneByOneByTwoAndByEightWithTheSameBits) { EXPECT_EQ(right_squares(store_a_square), 8u); }
TEST(CudaHost, EveryFaultPlantedInWhatStoresSumsIsFound) {
  for (const auto& fault : planted_in_squares) EXPECT_LT(right_squares(fault.kernel), 8u) << fault.name;
}
TEST(CudaHost, EveryFaultPlantedInAttentionIsFound) {
  HeadAttention a = attention_in_blocks<4, 48, 32>;
  ASSERT_EQ(right_runs_of(a), 8u);
  for (const auto& fault : planted_in_attention) {
    a.kernel = fault.kernel;
    EXPECT_LT(right_runs_of(a), 8u) << fault.name;
  }
}

TEST(CudaHost, AttentionsGradientsAreTheSumsOfTheirProductsWithoutBankConflicts) {
  const std::int64_t conflicts = tessera::cuda_host::bank_conflicts();
  for (const HeadGradient& a : head_gradients)
    EXPECT_EQ(right_runs_of(a), 8u) << a.rows << " queries, " << a.keys << " keys, " << a.width << " wide";
  EXPECT_EQ(tessera::cuda_host::bank_conflicts(), conflicts);
}
std::size_t right_runs_of(const HeadAgain& a) {
  return right_runs({1}, [&] { return std::vector<float>{gives_the_same_again<DeviceArray>(a) ? 1.0f : 0.0f}; });
}
TEST(CudaHost, AttentionsProbabilitiesMadeAgainAndTheirGradientsHaveTheSameBitsWithoutBankConflicts) {
  const std::int64_t conflicts = tessera::cuda_host::bank_conflicts();
  for (const HeadAgain& a : heads_again)
    EXPECT_EQ(right_runs_of(a), 8u) << a.stored.rows << " queries, " << a.stored.keys << " keys, " << a.stored.width
                                    << " wide";
  EXPECT_EQ(tessera::cuda_host::bank_conflicts(), conflicts);
}
TEST(CudaHost, EveryFaultPlantedWhereProbabilitiesAreMadeAgainIsFound) {
  HeadAgain a = again_of<80, 32>(77, 69);  // a tile is brought over one that was read
  ASSERT_EQ(right_runs_of(a), 8u);
  for (const auto& fault : planted_in_again) {
    a.kernel = fault.kernel;
    EXPECT_LT(right_runs_of(a), 8u) << fault.name;
  }
}
TEST(CudaHost, EveryFaultPlantedInAttentionsGradientIsFound) {
  HeadGradient a = gradient_of<48, 32>(77, 37);
  ASSERT_EQ(right_runs_of(a), 8u);
  for (const auto& fault : planted_in_gradient) {
    a.kernel = fault.kernel;
    EXPECT_LT(right_runs_of(a), 8u) << fault.name;
  }
}

TEST(CudaHost, AMissingWaitInTheProductIsFoundWhereverCopiesAreLate) {
  TensorProduct p = in_tiles<64, 32, 2, 2, true, true, false, true>;
  p.kernel = no_wait::on_tensor_cores<64, 32, 2, 2, true, true, false, true>;
  EXPECT_EQ(right_runs_of(p, odd_sizes_for(p)), 4u);
}
TEST(CudaHost, ATileThatIsNotSwizzledIsFoundByItsBankConflicts) {
  const std::int64_t conflicts = tessera::cuda_host::bank_conflicts();
  TensorProduct p = in_tiles<64, 32, 2, 2, true, true, false, true>;
  p.kernel = not_swizzled::on_tensor_cores<64, 32, 2, 2, true, true, false, true>;
  EXPECT_EQ(right_runs_of(p, odd_sizes_for(p)), 8u);
  EXPECT_GT(tessera::cuda_host::bank_conflicts(), conflicts);
}

// ---- by warpgroups ----------------------------------------------------------------------------------------------

TEST(CudaHost, TheWrappersOfWarpgroupsGiveWhatThePtxIsaSays) {
  for (const tessera::test::Descriptor& d : tessera::test::descriptors)
    EXPECT_EQ(descriptor(d.address, d.leading), d.word);
  for (const Options& options : all_options()) {
    tessera::cuda_host::use(options);
    EXPECT_EQ(wrong_wrapper_of_warpgroups<DeviceArray>(), "");
  }
  tessera::cuda_host::use({});
}

std::size_t right_runs_of(const WarpgroupProduct& p, const FourMatrices& m) {
  return right_runs(m.product(), [&] { return product_by<DeviceArray>(p, m); });
}
TEST(CudaHost, WarpgroupsGiveExactSumsOfWholeNumbersInEveryTileAndStorageOrder) {
  for (const WarpgroupProduct& p : warpgroup_products)
    EXPECT_EQ(right_runs_of(p, odd_sizes_for(p)), 8u) << p.tile_rows << " x " << p.tile_columns;
}
TEST(CudaHost, EveryFaultPlantedInTheProductByWarpgroupsIsFound) {
  WarpgroupProduct p = sound_warpgroups;
  const FourMatrices m = sizes_for_faults;
  ASSERT_EQ(right_runs_of(p, m), 8u);
  const std::vector<float> wanted = m.product();
  for (const auto& fault : planted_in_warpgroups) {
    p.kernel = fault.kernel;
    EXPECT_FALSE(always_right(wanted, [&] { return product_by<DeviceArray>(p, m); })) << fault.name;
  }
}
TEST(CudaHost, WarpgroupsSumTheLeftFactorsRowsByTheWay) {
  for (const SummingProduct& p : summing_products) {
    const FourMatrices m = odd_sizes_for(p.product);
    EXPECT_EQ(right_runs(product_and_sums(p, m), [&] { return product_and_sums_by<DeviceArray>(p, m); }), 8u)
        << p.product.tile_rows << " x " << p.product.tile_columns;
  }
}
TEST(CudaHost, EveryFaultPlantedInTheSumsOfRowsIsFound) {
  SummingProduct p = with_sums<64, 128, 1, 3, 2, false, 2>;
  const FourMatrices m = odd_sizes_for(p.product);
  const std::vector<float> wanted = product_and_sums(p, m);
  ASSERT_TRUE(always_right(wanted, [&] { return product_and_sums_by<DeviceArray>(p, m); }));
  for (const auto& fault : planted_in_sums_of_rows) {
    p.kernel = fault.kernel;
    EXPECT_FALSE(always_right(wanted, [&] { return product_and_sums_by<DeviceArray>(p, m); })) << fault.name;
  }
}
TEST(CudaHost, AChunkOfNoDepthsIsZero) {
  const FourMatrices m{{40, 24, 70}, 64, 64};
  for (const WarpgroupProduct& p :
       {in_warpgroups<128, 64, 2, 1, 4, 1, true, true>, in_warpgroups<128, 128, 2, 2, 6, 2, true, true>})
    EXPECT_EQ(right_runs_of(p, m), 8u) << p.teams;
}

TEST(CudaHost, SumsOnTensorCoresAreNotRounded) {
  const bf16 one = rounded(1);
  std::vector<bf16> left(32 * 32, one), right(32 * 32, one);
  std::vector<float> wanted(32 * 32, 4064 + 31);  // more bits than bf16 has
  for (std::size_t row = 0; row < 32; ++row) left[32 * row] = rounded(4064);
  EXPECT_EQ(right_runs(wanted,
                       [&] {
                         DeviceArray<bf16> a(left), b(right);
                         DeviceArray<float> out(32 * 32);
                         launch((on_tensor_cores<32, 32, 2, 2, true, true, true, true>), dim3(1), dim3(128),
                                tensor_product_bytes(32, 32), nullptr, a.data(), b.data(), out.data(), 32, 32, 32);
                         return out.values();
                       }),
            8u);
}

enum class Planted { nothing, no_barrier, no_second_barrier, wrong_fragment, no_wait, row_past_the_end };

/// C [rows, 8] = A [rows, depth] B [8, depth]^T in bf16, one warp-wide tile of 16 rows for each of two warps, through
/// asynchronous copies, load_matrices and multiply_add. depth is a multiple of 16.
template <Planted fault>
void brain_precision(const bf16* left, const bf16* right, float* out, int rows, int depth) {
  bf16* const tile = shared_memory<bf16>();  // [32, 16] of the left matrix, then [8, 16] of the right one
  bf16* const right_tile = tile + 32 * 16;
  const int lane = thread_x() % 32, warp = thread_x() / 32, first_row = block_x() * 32;
  float sum[4] = {0, 0, 0, 0};
  for (int begin = 0; begin < depth; begin += 16) {
    const int row = thread_x() / 2, half = thread_x() % 2 * 8;
    const bool inside = fault == Planted::row_past_the_end ? first_row + row <= rows : first_row + row < rows;
    copy_async(tile + row * 16 + half, inside ? left + (first_row + row) * depth + begin + half : left,
               inside ? 16 : 0);
    if (thread_x() < 16) copy_async(right_tile + row * 16 + half, right + row * depth + begin + half, 16);
    copy_commit();
    if (fault != Planted::no_wait) copy_wait<0>();
    if (fault != Planted::no_barrier) barrier();
    std::uint32_t of_left[4], of_right[4];
    load_matrices(of_left, tile + (warp * 16 + lane % 16) * 16 + lane / 16 * 8);
    load_matrices(of_right, right_tile + lane % 8 * 16 + (lane / 8 % 2) * 8);
    if (fault == Planted::wrong_fragment) std::swap(of_left[1], of_left[2]);
    multiply_add(sum, of_left, of_right);
    if (fault != Planted::no_second_barrier) barrier();
  }
  for (int i = 0; i < 4; ++i) {
    const int row = first_row + warp * 16 + lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    if (row < rows) out[row * 8 + column] = sum[i];
  }
}

template <Planted fault>
std::size_t right_products() {
  const Matrices m{64 + 32 + 19, 8, 48};
  return right_runs(m.product(), [&] {
    DeviceArray<bf16> left(static_cast<std::size_t>(m.rows * m.depth)), right(static_cast<std::size_t>(8 * m.depth));
    DeviceArray<float> out(static_cast<std::size_t>(m.rows * 8));
    for (int k = 0; k < m.depth; ++k) {
      for (int row = 0; row < m.rows; ++row) left.data()[row * m.depth + k] = {to_bf16(m.left(row, k))};
      for (int column = 0; column < 8; ++column) right.data()[column * m.depth + k] = {to_bf16(m.right(column, k))};
    }
    launch(brain_precision<fault>, dim3(4), dim3(64), 40 * 16 * sizeof(bf16), nullptr, left.data(), right.data(),
           out.data(), m.rows, m.depth);
    return out.values();
  });
}

TEST(CudaHost, ATensorCoreProductOfWholeNumbersIsExact) { EXPECT_EQ(right_products<Planted::nothing>(), 8u); }
TEST(CudaHost, AMissingBarrierBeforeTheTileIsReadIsFound) { EXPECT_LT(right_products<Planted::no_barrier>(), 8u); }
TEST(CudaHost, AMissingBarrierBeforeTheTileIsWrittenAgainIsFound) {
  EXPECT_LT(right_products<Planted::no_second_barrier>(), 8u);
}
TEST(CudaHost, AWrongFragmentIndexIsFound) { EXPECT_EQ(right_products<Planted::wrong_fragment>(), 0u); }
TEST(CudaHost, AMissingWaitIsFoundWhereCopiesAreLate) { EXPECT_EQ(right_products<Planted::no_wait>(), 4u); }
TEST(CudaHost, ARowReadPastTheEndIsFound) { EXPECT_EQ(right_products<Planted::row_past_the_end>(), 0u); }

// ---- what breaks a rule is told ---------------------------------------------------------------------------------

void two_barriers(float*) {
  if (thread_x() < 32)
    barrier();
  else
    barrier();
}
TEST(CudaHost, ThreadsAtDifferentBarriersAreNamedWithBothLines) {
  const std::string fault = fault_of(two_barriers, 64);
  EXPECT_NE(fault.find("planted: threads of one block wait at different barriers, host_test.cpp:"), std::string::npos);
  EXPECT_NE(fault.find(" and host_test.cpp:"), std::string::npos) << fault;
}

void two_shuffles(float* out) { out[thread_x()] = thread_x() < 16 ? shuffle_xor(1, 1) : shuffle_xor(2, 1); }
TEST(CudaHost, LanesAtDifferentOperationsAreNamedWithBothLines) {
  EXPECT_NE(fault_of(two_shuffles, 32).find("lanes of one warp are at different operations, host_test.cpp:"),
            std::string::npos);
}

template <bool parted, class Step>
void by_one_way_or_two(Step step) {
  if (parted && thread_x() % 2)
    step();
  else
    step();
}
template <bool parted>
void multiply_once(float* out) {
  float sum[4] = {0, 0, 0, 0};
  const std::uint32_t left[4] = {0, 0, 0, 0}, right[2] = {0, 0};
  by_one_way_or_two<parted>([&] { multiply_add(sum, left, right); });
  out[thread_x()] = sum[0];
}
template <bool parted>
void wait_once(float* out) {
  by_one_way_or_two<parted>([] { barrier(); });
  out[thread_x()] = 1;
}
template <bool parted>
void shuffle_once(float* out) {
  by_one_way_or_two<parted>([&] { out[thread_x()] = shuffle_xor(1, 1); });
}
TEST(CudaHost, LanesThatHaveNotConvergedAtAnAlignedInstructionAreFound) {
  const std::string what = "by different ways: they have not converged; block (0, 0, 0), thread 1, fixed schedule";
  EXPECT_NE(fault_of(multiply_once<true>, 32).find(what), std::string::npos);
  EXPECT_NE(fault_of(wait_once<true>, 64).find(what), std::string::npos);
  EXPECT_EQ(fault_of(multiply_once<false>, 32), "");
  EXPECT_EQ(fault_of(wait_once<false>, 64), "");
  EXPECT_EQ(fault_of(wait_once<false>, 48), "");
  EXPECT_EQ(fault_of(shuffle_once<true>, 32), "") << "which is not aligned";
}

void half_a_shuffle(float* out) {
  if (thread_x() < 16) out[thread_x()] = shuffle_xor(1, 1);
}
TEST(CudaHost, ADeadlockSaysWhoWaitsWhere) {
  EXPECT_NE(fault_of(half_a_shuffle, 32).find("nobody can go on; block (0, 0, 0), thread 0 waits at host_test.cpp:"),
            std::string::npos);
}

void past_the_end(float* out) { out[thread_x() * 4] = 1; }
TEST(CudaHost, AWritePastTheEndIsFoundWithItsThread) {
  const std::string fault = fault_of(past_the_end, 32);
  EXPECT_NE(fault.find("memory outside of every array is touched; block (0, 0, 0), thread 16"), std::string::npos)
      << fault;
}

void copy_and_leave(float* numbers) {
  copy_async(shared_memory<float>() + 4 * thread_x(), numbers, 16);
  copy_commit();
}
TEST(CudaHost, ACopyThatIsNeverWaitedForIsFoundWhereCopiesAreLate) {
  DeviceArray<float> numbers(64);
  const auto run = [&] { launch(copy_and_leave, dim3(1), dim3(32), 32 * 16, nullptr, numbers.data()); };
  EXPECT_NO_THROW(run());
  tessera::cuda_host::use({Schedule::fixed, 1, true});
  EXPECT_THROW(run(), Fault);
  tessera::cuda_host::use({});
}

void nothing(float*) {}
TEST(CudaHost, AGridThatNoGpuTakesIsRefused) {
  EXPECT_NE(fault_of(nothing, 2048).find("cannot be launched"), std::string::npos);
}
TEST(CudaHost, ABlockThatNeedsMoreSharedMemoryThanItsGpuHasIsNotStarted) {
  const TensorProduct& p = tensor_products[0];  // 132 kB: for sm_80, but not for sm_86
  const Matrices m{3, 5, 8};
  for (const auto& [kilobytes, code] : {std::pair{99, 7}, {163, 0}}) {
    tessera::cuda_host::use({.shared_kilobytes = kilobytes});
    EXPECT_EQ(product_by<DeviceArray>(p, m) == m.product(), code == 0);
    EXPECT_EQ(launch_code(0, 6, 7), code);
    EXPECT_EQ(launch_code(0, 6, 7), 0) << "it is told twice";
  }
  tessera::cuda_host::use({});
}
struct Streams {
  Streams() {
    cudaStreamCreateWithFlags(&computes, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMalloc(&memory, sizeof(float));
  }
  ~Streams() {
    cudaFree(memory);
    cudaEventDestroy(event);
    cudaStreamDestroy(copies);
    cudaStreamDestroy(computes);
  }
  void copy_in(const float& from) {
    EXPECT_EQ(cudaMemcpyAsync(memory, &from, sizeof from, cudaMemcpyHostToDevice, copies), cudaSuccess);
  }
  /// What the first stream finds in the memory.
  float found() {
    float there = 0;
    cudaMemcpyAsync(&there, memory, sizeof there, cudaMemcpyDeviceToHost, computes);
    cudaStreamSynchronize(computes);
    return there;
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t computes = nullptr, copies = nullptr;
  cudaEvent_t event = nullptr;
  void* memory = nullptr;
};
TEST(CudaHost, AStreamWaitsForWhatAnotherOneHadWhenTheEventWasRecordedAndForNoMore) {
  Streams s;
  const float first = 1, second = 2;
  s.copy_in(first);
  EXPECT_NE(s.found(), 1) << "nobody waits";
  cudaEventRecord(s.event, s.copies);
  s.copy_in(second);
  cudaStreamWaitEvent(s.computes, s.event, 0);
  EXPECT_EQ(s.found(), 1);
  cudaStreamSynchronize(s.copies);
  EXPECT_EQ(s.found(), 2);
}
TEST(CudaHost, ACopyFromRegisteredMemoryTakesWhatIsThereWhenItIsDone) {
  Streams s;
  float number = 1;
  s.copy_in(number);
  number = 2;
  cudaStreamSynchronize(s.copies);
  EXPECT_EQ(s.found(), 1) << "as it was";
  ASSERT_EQ(cudaHostRegister(&number, sizeof number, cudaHostRegisterDefault), cudaSuccess);
  s.copy_in(number);
  number = 3;
  cudaStreamSynchronize(s.copies);
  EXPECT_EQ(s.found(), 3);
  EXPECT_EQ(cudaHostUnregister(&number), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(&number), cudaErrorInvalidValue);
}
TEST(CudaHost, TensorCoresThatTruncateLoseWhatIsBelowTheLargestSummand) {
  float three_halves[16];
  std::fill_n(three_halves, 16, 1.5f);
  const float large = 1 << 24;  // whose neighbours are two apart
  for (const auto& [at_once, wanted] : {std::pair{0, large + 32}, {8, large}, {16, large}}) {
    tessera::cuda_host::use({.products_at_once = at_once});
    EXPECT_EQ(tessera::cuda_host::with_products(large, three_halves), wanted) << at_once;
    EXPECT_EQ(tessera::cuda_host::with_products(8, three_halves), 32) << at_once;
  }
  // Of eight at once the first two cancel before the ninth comes.
  float cancelling[16] = {large, -large};
  cancelling[8] = 1.5f;
  for (const auto& [at_once, wanted] : {std::pair{0, 1.5f}, {8, 1.5f}, {16, 0.0f}}) {
    tessera::cuda_host::use({.products_at_once = at_once});
    EXPECT_EQ(tessera::cuda_host::with_products(0, cancelling), wanted) << at_once;
  }
  tessera::cuda_host::use({});
}
TEST(CudaHost, AClusterThatNotEveryGpuHasRoomForIsRefused) {
  tessera::cuda_host::use({.warpgroups = true});
  DeviceArray<float> numbers(1);
  EXPECT_NO_THROW(launch_clusters(nothing, 8, dim3(8), dim3(32), 0, nullptr, numbers.data()));
  EXPECT_THROW(launch_clusters(nothing, 16, dim3(16), dim3(32), 0, nullptr, numbers.data()), Fault);
  tessera::cuda_host::use({});
}

TEST(CudaHost, TheSeedOfARandomScheduleIsInTheMessage) {
  tessera::cuda_host::use({Schedule::random, 77, true});
  EXPECT_NE(fault_of(two_barriers, 64).find("random schedule, seed 77, late copies"), std::string::npos);
  tessera::cuda_host::use({});
}

}  // namespace
