// Runs CUDA kernels on the CPU, one fiber a thread, one block after the other. What a GPU does only sometimes happens
// here always: shared memory starts as not-a-number, threads run one by one as far as they can get, in an order of the
// caller's choice, and asynchronous copies arrive at the last moment that is legal.
//
// x86-64 only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>

/// As in CUDA.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

namespace tessera::cuda_host {

/// In which order blocks, and the threads of one, are run between two barriers.
enum class Schedule { fixed, reversed, random };

struct Options {
  Schedule schedule = Schedule::fixed;
  std::uint64_t seed = 1;    ///< of Schedule::random
  bool late_copies = false;  ///< what is asynchronous at its wait, not at once
  bool warpgroups = false;   ///< the GPU is one of sm_90a
  int shared_kilobytes = 0;  ///< that a block may have; 0: as on sm_80 or sm_90a. sm_86 and sm_89 have 99
  /// Products that tensor cores add to a sum at once, each truncated to the last place of the largest summand, as they
  /// are there with a bit or two more; 0: one by one, rounded to nearest. By default 8 as on an A100 or, with
  /// warpgroups, 16 as on an H100.
  int products_at_once = -1;
};
/// For every launch from now on.
void use(const Options& options);
std::size_t most_shared_bytes();
/// Of all launches so far: rows of a matrix that load_matrices cannot read at once with those before them.
std::int64_t bank_conflicts();

/// What went wrong in a kernel: one sentence with the kernel, the block and thread, the places and the schedule.
class Fault : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Runs `kernel` for every thread of every block. Throws Fault: threads of a block at different barriers, lanes of a
/// warp at different operations, nobody left to run, memory touched outside of a DeviceArray, asynchronous copies and
/// multiplications that are never waited for (where they are late), and what breaks a rule of those of sm_90a.
/// Blocks of a cluster, which follow each other along x, run together.
void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
         unsigned cluster = 1);

// ---- for device.hpp: the thread that runs now --------------------------------------------------------------------

struct Thread {
  int thread = 0;  ///< within its block
  dim3 block;      ///< index
};
const Thread& current();
const dim3& block_size();
const dim3& grid_size();
unsigned char* shared_bytes();

using Place = std::source_location;
void barrier(const Place& place);
/// All 32 lanes hand in their `mine`, then `together` runs once for all of them. `aligned`: an instruction of PTX that
/// is, to which lanes come by the same calls: where these differ, the lanes have parted and not converged.
void warp(const Place& place, void* mine, void (*together)(void* const lanes[32]), bool aligned = true);
/// A place that one instruction touches is a multiple of its bytes.
void check_aligned(const void* place, std::size_t bytes);
/// The sum and 16 products, as the options have it.
float with_products(float sum, const float (&products)[16]);
/// 16 bytes to shared memory, `valid` of them from `from`, the rest zero: now, or when it is waited for.
void copy_async(void* to, const void* from, int valid);
void copy_commit();
void copy_wait(int left);
/// By an operation of the warp, in the name of this thread.
void reads(const void* first, std::size_t bytes);
/// The eight rows, 16 bytes each, of a matrix that is read at once.
void read_at_once(const void* const rows[8]);

// ---- for device.hpp: sm_90a --------------------------------------------------------------------------------------

bool has_warpgroups();
/// A tensor of bf16 that lies in lines.
struct TensorMap {
  const void* first;
  std::int64_t extents[4], strides[4];  ///< strides in bytes
  int lines;                            ///< of a box
};
/// Whether CUDA would make such a map.
bool is_possible(const TensorMap& map);
/// From the start of the block's shared memory, which is no 0.
std::uint32_t shared_address(const void* place);
void gate_begin(void* gate, int arrivals);
void gate_arrive(void* gate, int bytes);
/// At the same place in another block of the cluster: now or, late, when a barrier of the cluster that releases demands
/// it, or nobody can go on without it.
void gate_arrive_in(void* gate, int block);
void cluster_barrier(bool releases, const Place& place);
void gate_wait(const void* gate, int parity, const Place& place);
void asynchronous_fence();
/// Now or, late, when nobody can go on without it; to each of so many blocks by itself.
void copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing, int blocks);
void barrier_of(int name, int count, const Place& place);
void multiplications_begin(const Place& place);
void multiplications_commit(const Place& place);
void multiplications_wait(int left, const Place& place);
/// Of a warp's 16 rows of the warpgroup's 64. Now, or at its wait: until then nobody knows the sums.
struct Multiplication {
  float* sums;  ///< of a lane
  int columns;
  bool left_across, right_across;
  std::uint64_t left, right;    ///< descriptors
  const void* place = nullptr;  ///< that asks for it
};
void multiply_add_async(const Multiplication& mine, const Place& place);

}  // namespace tessera::cuda_host
