// One launch of a kernel: what run.cpp (fibers, barriers, copies) and warpgroups.cpp (sm_90a) know together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/host/races.hpp"
#include "tests/cuda/host/run.hpp"

namespace tessera::cuda_host {

struct Copy {
  unsigned char* to;
  const unsigned char* from;
  int valid;
  const void* place;  ///< that asks for it
};

enum class State { ready, waiting, done };

struct Fiber : Thread {
  State state = State::done;
  int slot = 0;  ///< among the threads of its cluster, a block's from a multiple of 128 on
  void* stack_pointer = nullptr;
  int stack = -1;  ///< which of the pool's; -1: not begun
  races::Identity identity = nullptr;
  Place place;  ///< where it waits
  const char* whom = "";
  bool at_barrier = false, at_cluster_barrier = false;
  int at_named_barrier = 0;
  const void* gate = nullptr;  ///< that it waits for
};

/// Asynchronous copies of a thread.
struct Copies {
  std::vector<Copy> open;                ///< of no group yet
  std::deque<std::vector<Copy>> groups;  ///< under way
};

/// What a warp has handed in so far.
struct Warp {
  int arrived = 0;
  void* lanes[32] = {};
  Place place;
  std::uintptr_t calls = 0;       ///< by which the first of its lanes came there
  int at_barrier = 0;             ///< lanes
  std::uintptr_t to_barrier = 0;  ///< by which the first of them came there
};

/// How a gate lies in shared memory: what is written over it is no gate any more.
struct GateState {
  std::uint64_t parity : 1;  ///< of the phase that has not ended
  std::uint64_t expected : 11, pending : 11;
  std::int64_t bytes : 25;
  std::uint64_t sign : 16;
};
static_assert(sizeof(GateState) == 8);

/// A box of a tensor on its way.
struct Box {
  std::size_t block;  ///< of the cluster
  unsigned char* to;
  TensorMap map;
  void* gate;
  int at[4];
};

/// At a gate of another block, on its way.
struct Arrival {
  std::size_t block;  ///< of the cluster
  void* gate;
};

/// A warp's multiplication under way.
struct WarpMultiplication {
  Multiplication of_lane[32];
};
struct Multiplications {
  bool begun = false;
  std::vector<WarpMultiplication> open;
  std::deque<std::vector<WarpMultiplication>> groups;
  std::map<float*, std::vector<float>> sums;  ///< of what is under way
  std::size_t issued = 0;

  // A thread to ThreadSanitizer for what is under way, which reads, and one for what has been waited for.
  int reader = -1, waited_for = -1;  ///< which of the pool's
  char of_lanes = 0;
  std::size_t committed = 0;
  char of_groups[8] = {};  ///< in turn
};
/// What is told at a barrier: by its phases in turn, because a thread may be at the next one before another has learned
/// of this one.
struct Phases {
  char told[2] = {};
  unsigned now = 0;
  const void* current() const { return &told[now % 2]; }
};
struct NamedBarrier {
  int count = 0, arrived = 0;
  Phases phases;
};
/// What the threads of a block share.
struct Block {
  std::size_t live = 0, at_barrier = 0;  ///< threads
  Place barrier;                         ///< at which they wait
  Phases phases, cluster_phases;
  std::map<int, NamedBarrier> named_barriers;
  std::vector<unsigned char> shared;
  std::size_t shared_from = 0;
};

class Launch {
 public:
  void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
           unsigned cluster);

  void barrier(const Place& place);
  void warp(const Place& place, void* mine, void (*together)(void* const lanes[32]), bool aligned);
  void read_at_once(const void* const rows[8]);
  void copy_async(const Copy& copy);
  void copy_commit();
  void copy_wait(int left);

  // ---- sm_90a ----------------------------------------------------------------------------------------------------

  std::uint32_t shared_address(const void* place) { return address_in(mine(), place); }
  void gate_begin(void* gate, int arrivals);
  void gate_arrive(void* gate, int bytes);
  void gate_arrive_in(void* gate, int block);
  void gate_wait(const void* gate, int parity, const Place& place);
  void asynchronous_fence();
  void barrier_of(int name, int count, const Place& place);
  void cluster_barrier(bool releases, const Place& place);
  void copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing, int blocks,
                const void* place);
  void begin_multiplications() { multiplications().begun = true; }
  void begin_multiplication(const WarpMultiplication& m);
  void commit_multiplications();
  void wait_for_multiplications(int left);

  // ----------------------------------------------------------------------------------------------------------------

  [[noreturn]] void fail(const std::string& what);

  Fiber* running() { return running_; }
  const dim3& block() const { return block_; }
  const dim3& grid() const { return grid_; }
  unsigned char* shared() { return shared_of(mine()); }

  Options options;
  std::int64_t conflicts = 0;

 private:
  struct Alone;

  std::string schedule() const;
  std::string sentence(const Fiber& thread, const std::string& what) const;
  const std::vector<std::size_t>& order(std::size_t count, std::vector<std::size_t>& at);
  void one_cluster(dim3 first, unsigned cluster, std::size_t threads, std::size_t shared_bytes);
  void begin_cluster(dim3 first, unsigned cluster, std::size_t threads, std::size_t shared_bytes);

  std::size_t block_of(const Fiber& f) const { return static_cast<std::size_t>(f.slot) / threads_; }
  Block& mine() { return blocks_[block_of(*running_)]; }
  static unsigned char* shared_of(Block& b) { return b.shared.data() + b.shared_from; }

  void step(Fiber& f);
  void begin(Fiber& f);
  int take();
  void give_back(int& taken);
  void give_back_all();
  races::Identity identity(int taken) const { return identities_[static_cast<std::size_t>(taken)]; }
  static void entry();
  void wait(const Place& place, const char* whom);
  std::uintptr_t calls() const;
  void converged(bool first, std::uintptr_t& calls_of_first, const Place& place);
  void converged_at_barrier(const Place& place);
  void to_main();
  void release(Block& b);
  void release_cluster();
  static void tell_of(const Copy& copy);
  void all_copies_waited_for();

  // ---- sm_90a ----------------------------------------------------------------------------------------------------

  GateState state_of(const void* gate);
  /// What is told at a gate, by its phases in turn.
  static const void* phase_of(const void* gate, std::uint64_t parity) {
    return static_cast<const char*>(gate) + parity;
  }
  void arrive(void* gate, int bytes);
  static void set(void* gate, const GateState& g) { std::memcpy(gate, &g, sizeof g); }
  void advance(void* gate, GateState g);
  unsigned char* there(void* place, std::size_t block);
  static std::uint32_t address_in(Block& b, const void* place);
  void check_shared(const Block& b, std::uint32_t address, int bytes);
  static int bytes_of(const Box& box) { return 128 * box.map.lines; }
  static void tell_of(const Box& box, const void* place);
  void bring(const Box& box);
  void bring_one();
  void arrive_late(std::size_t which);
  const unsigned char* place_of(std::uint64_t descriptor, bool across, int point, int depth);
  void tell_of(const Multiplication& first);
  void multiply(const WarpMultiplication& m, float* const (&sums)[32]);
  Multiplications& multiplications() { return multiplications_[static_cast<std::size_t>(running_->slot / 32)]; }
  void all_multiplications_waited_for();

  std::string name_, fault_;
  const std::function<void()>* kernel_ = nullptr;
  dim3 block_, grid_;
  std::mt19937_64 random_;
  std::vector<std::size_t> block_order_, warp_order_, lane_order_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::map<int, Copies> copies_;                  ///< by thread
  std::vector<Box> boxes_;                        ///< on their way
  std::vector<Arrival> arrivals_;                 ///< the same
  std::map<const void*, int> unfenced_;           ///< gates, and the thread that began them
  std::vector<Multiplications> multiplications_;  ///< by warp
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> multiplied_;  ///< by warpgroup: descriptors
  std::vector<Block> blocks_;                                                     ///< of the cluster
  std::size_t threads_ = 0;                                                       ///< of a block, filled up
  std::size_t cluster_threads_ = 0;
  std::size_t at_cluster_barrier_ = 0;
  bool cluster_barrier_releases_ = false;
  std::vector<std::unique_ptr<unsigned char[]>> stacks_;
  std::vector<races::Identity> identities_;  ///< a stack's
  std::deque<int> free_;
  races::Identity machine_ = nullptr;
  char begun_ = 0, ended_ = 0;  ///< what is told when a launch begins and ends
  Fiber* running_ = nullptr;
  void* main_ = nullptr;
};

extern Launch the_launch;

}  // namespace tessera::cuda_host
