// Kernels in which two threads race, and the same ones without that; of both the numbers are right in every order in
// which threads run on the CPU, but for those that are `seen`. Included behind all headers of the device and
// planted_races.hpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace {

/// What each thread adds to its block's, and the block to the grid's: in a place of its own, or in everybody's.
template <bool race>
__global__ void write_a_place_of_each_block(float* out) {
  out[race ? thread_x() : block_x() * threads() + thread_x()] = 3;
}
/// A block writes what is there already, and reads what it wrote, or its neighbour.
template <bool race>
__global__ void read_what_a_block_writes(float* numbers, float* out) {
  const int me = block_x() * threads() + thread_x(), other = (1 - block_x()) * threads() + thread_x();
  numbers[me] = 3;
  out[me] = numbers[race ? other : me];
}
/// Lanes exchange numbers through shared memory. Here a shuffle is an appointment of all lanes, and no more than that.
template <bool race>
__global__ void exchange_between_lanes(float* out) {
  real* const shared = shared_memory<real>();
  shared[thread_x()] = static_cast<real>(thread_x());
  const real other = shuffle_xor(static_cast<real>(thread_x()), 1);
  if (!race) barrier();
  out[thread_x()] = shared[thread_x() ^ 1] - other + 3;
}
/// A thread writes a number and tells the block by a gate: by an arrival that tells, or by one that tells of
/// multiplications alone.
template <bool race>
__global__ void tell_by_a_gate(float* out) {
  Gate* const gate = shared_tiles<Gate>();
  real* const number = reinterpret_cast<real*>(gate + 1);
  if (thread_x() == 0) {
    gate_begin(gate, 1);
    asynchronous_fence();
  }
  cluster_barrier<2>();
  if (thread_x() == 5) {
    *number = 3;
    race ? gate_arrive<2>(gate, block_x() % 2) : gate_expect(gate, 0);
  }
  gate_wait(gate, 0);
  out[block_x() * threads() + thread_x()] = *number;
  cluster_barrier<2>();
}

struct Racing {
  std::string name;
  std::vector<float> wanted;
  std::function<std::vector<float>(bool race)> run;
  bool seen = false;  ///< arrivals that come as late as they may show the race in some orders of threads
};

inline std::vector<float> threes(std::size_t count) { return std::vector<float>(count, 3.0f); }

inline std::vector<Racing> racing_kernels() {
  using tessera::cuda_host::DeviceArray;
  std::vector<Racing> all;
  all.push_back({"two blocks write the same number to one place", threes(64), [](bool race) {
                   DeviceArray<float> out(threes(64));
                   launch_named("write", race ? write_a_place_of_each_block<true> : write_a_place_of_each_block<false>,
                                dim3(2), dim3(32), 0, nullptr, out.data());
                   return out.values();
                 }});
  all.push_back({"a block reads what another one writes", threes(64), [](bool race) {
                   DeviceArray<float> numbers(threes(64)), out(64);
                   launch_named("read", race ? read_what_a_block_writes<true> : read_what_a_block_writes<false>,
                                dim3(2), dim3(32), 0, nullptr, numbers.data(), out.data());
                   return out.values();
                 }});
  all.push_back({"a shuffle in the place of a barrier", threes(32), [](bool race) {
                   DeviceArray<float> out(32);
                   launch_named("exchange", race ? exchange_between_lanes<true> : exchange_between_lanes<false>,
                                dim3(1), dim3(32), 32 * sizeof(float), nullptr, out.data());
                   return out.values();
                 }});
  all.push_back({"an arrival at a gate that does not tell", threes(64), [](bool race) {
                   DeviceArray<float> out(64);
                   launch_clusters_named("tell", race ? tell_by_a_gate<true> : tell_by_a_gate<false>, 2, dim3(2),
                                         dim3(32), 16, nullptr, out.data());
                   return out.values();
                 }});
  all.push_back({"a sum over the one before it", std::vector<float>(2 * 96, 2 * 4560), [](bool race) {
                   DeviceArray<float> out(2 * 96);
                   launch_named("sum_twice", race ? sums_over_each_other::sum_twice : sum_twice, dim3(2), dim3(96),
                                3 * sizeof(float), nullptr, out.data());
                   return out.values();
                 }});

  std::vector<float> of_lanes;
  for (int thread = 0; thread < 2 * 96; ++thread) of_lanes.push_back(static_cast<float>(2 * (3 * (thread % 32) + 96)));
  all.push_back({"a lane's sum over the one before it", of_lanes, [](bool race) {
                   DeviceArray<float> out(2 * 96);
                   launch_named("sum_over_warps_twice",
                                race ? sums_of_lanes_over_each_other::sum_over_warps_twice : sum_over_warps_twice,
                                dim3(2), dim3(96), 96 * sizeof(float), nullptr, out.data());
                   return out.values();
                 }});

  all.push_back({"a step over the one before it", std::vector<float>(16 * 16, 3 * 8 * 3), [](bool race) {
                   DeviceArray<float> ones(std::vector<float>(16 * 24, 1)), of_right(threes(16 * 24)), out(16 * 16);
                   launch_named("product",
                                race ? steps_over_each_other::single_precision<16, 16, 2, true, true>
                                     : single_precision<16, 16, 2, true, true>,
                                dim3(1), dim3(64), static_cast<std::size_t>(product_bytes(16, 16)), nullptr,
                                ones.data(), of_right.data(), out.data(), 16, 16, 24);
                   return out.values();
                 }});

  const auto tensor = [&](const char* name, TensorProduct p, decltype(TensorProduct::kernel) with_race) {
    const Matrices m{p.tile_rows + 5, p.tile_columns - 3, 173};
    all.push_back({name, m.product(), [=](bool race) mutable {
                     TensorProduct mine = p;
                     if (race) mine.kernel = with_race;
                     return product_by<DeviceArray>(mine, m);
                   }});
  };
  constexpr TensorProduct of_one_warp = in_tiles<32, 32, 1, 1, true, true, false, true>;
  tensor("no barrier behind the wait for copies", of_one_warp,
         no_barrier_before_a_step_of_one_warp::on_tensor_cores<32, 32, 1, 1, true, true, false, true>);
  tensor("no barrier before sums lie where factors were", of_one_warp,
         no_barrier_before_the_sums_of_one_warp::on_tensor_cores<32, 32, 1, 1, true, true, false, true>);
  tensor("two blocks with the same rows", in_tiles<32, 32, 2, 2, true, true, false, true>,
         a_last_tile_moved_back::on_tensor_cores<32, 32, 2, 2, true, true, false, true>);

  const auto attend = [&](const char* name, decltype(HeadAttention::kernel) with_race) {
    all.push_back({name, {1}, [=](bool race) {
                     HeadAttention a = attention_in_blocks<1, 48, 32>;
                     if (race) a.kernel = with_race;
                     return std::vector<float>{attends<DeviceArray>(a) ? 1.0f : 0.0f};
                   }});
  };
  attend("no barrier behind the wait for keys", no_barrier_before_the_keys_of_one_warp::attention_of_a_head<1, 48, 32>);
  attend("no barrier behind the wait for values",
         no_barrier_before_the_values_of_one_warp::attention_of_a_head<1, 48, 32>);
  attend("a warp's next queries over those that its lanes read",
         next_queries_over_those_that_are_read::attention_of_a_head<1, 48, 32>);
  attend("no barrier behind a warp's wait for its next queries",
         no_barrier_before_the_next_queries::attention_of_a_head<1, 48, 32>);
  attend("two blocks with the same tile", tiles_of_the_blocks_beside::attention_of_a_head<1, 48, 32>);

  all.push_back({"no barrier between a row's changes and their readers", {1}, [](bool race) {
                   HeadGradient a = gradient_of<16, 16>(37, 13);
                   if (race) a.kernel = no_barrier_before_the_changes_of_one_warp::attention_gradient_of_a_head<16, 16>;
                   return std::vector<float>{gives_gradients<DeviceArray>(a) ? 1.0f : 0.0f};
                 }});

  const FourMatrices four{{2 * 64 + 1, 40, 3 * 64 + 21}, 64, 4 * 64};
  all.push_back({"a square of sums over one that is still read", four.product(), [=](bool race) {
                   WarpgroupProduct p = in_warpgroups<64, 128, 1, 1, 4, 2, true, true>;
                   if (race)
                     p.kernel = a_square_over_one_that_a_warp_reads::by_warpgroups<64, 128, 1, 1, 4, 2, true, true>;
                   return product_by<DeviceArray>(p, four);
                 }});
  all.back().seen = true;
  all.push_back({"a square of sums that is read too early", four.product(), [=](bool race) {
                   WarpgroupProduct p = in_warpgroups<64, 128, 1, 1, 4, 2, true, true>;
                   if (race)
                     p.kernel = no_barrier_before_a_square_of_one_warp::by_warpgroups<64, 128, 1, 1, 4, 2, true, true>;
                   return product_by<DeviceArray>(p, four);
                 }});
  all.back().seen = true;
  const auto summing = [&](const char* name, decltype(SummingProduct::kernel) with_race) {
    const SummingProduct p = with_sums<64, 128, 1, 3, 2, false, 1>;
    const FourMatrices m = odd_sizes_for(p.product);
    all.push_back({name, product_and_sums(p, m), [=](bool race) mutable {
                     SummingProduct mine = p;
                     if (race) mine.kernel = with_race;
                     return product_and_sums_by<DeviceArray>(mine, m);
                   }});
  };
  summing("a step where rows are still summed",
          a_step_over_rows_that_are_read::by_warpgroups_with_sums<64, 128, 1, 3, 2, false, 1>);
  return all;
}

}  // namespace
