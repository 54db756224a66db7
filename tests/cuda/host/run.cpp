#include "tests/cuda/host/run.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

// Saves the registers that a function must keep and the stack of the running fiber, and takes up another's.
extern "C" void tessera_switch_stacks(void** save, void* load);
__asm__(R"(
.text
.globl tessera_switch_stacks
.type tessera_switch_stacks, @function
tessera_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tessera_switch_stacks, .-tessera_switch_stacks
)");

namespace tessera::cuda_host {

namespace {

constexpr std::size_t stack_bytes = 128 * 1024;

struct Copy {
  unsigned char* to;
  const unsigned char* from;
  int valid;
};

enum class State { ready, waiting, done };

struct Fiber : Thread {
  State state = State::done;
  int slot = 0;  ///< among the threads of its cluster, a block's from a multiple of 128 on
  void* stack_pointer = nullptr;
  int stack = -1;  ///< which of the pool's; -1: not begun
  Place place;     ///< where it waits
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
};

/// How a gate lies in shared memory: what is written over it is no gate any more.
struct GateState {
  std::uint64_t parity : 1;  ///< of the phase that has not ended
  std::uint64_t expected : 11, pending : 11;
  std::int64_t bytes : 25;
  std::uint64_t sign : 16;
};
static_assert(sizeof(GateState) == 8);
constexpr std::uint64_t sign_of_gates = 0x6a7e;

/// A box of a tensor on its way.
struct Box {
  std::size_t block;  ///< of the cluster
  unsigned char* to;
  TensorMap map;
  void* gate;
  int at[4];
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
};
struct NamedBarrier {
  int count = 0, arrived = 0;
};
/// What the threads of a block share.
struct Block {
  std::size_t live = 0, at_barrier = 0;  ///< threads
  Place barrier;                         ///< at which they wait
  std::map<int, NamedBarrier> named_barriers;
  std::vector<unsigned char> shared;
  std::size_t shared_from = 0;
};
constexpr std::uint32_t shared_begin = 1024;  // there a block's memory begins on a GPU, too

float number_at(const unsigned char* place) {
  std::uint16_t half;
  std::memcpy(&half, place, sizeof half);
  const std::uint32_t bits = std::uint32_t{half} << 16;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
/// Where 128-byte swizzling has the byte of this address: PTX ISA, "Swizzling modes".
std::uint32_t swizzled_128(std::uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

std::string text(const Place& place) {
  std::string file = place.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}
bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

class Launch {
 public:
  void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
           unsigned cluster) {
    name_ = name;
    kernel_ = &kernel;
    block_ = block;
    fault_.clear();
    random_.seed(options.seed);
    const std::size_t threads = std::size_t{block.x} * block.y * block.z;
    const std::size_t most_shared = (options.warpgroups ? 227 : 163) * 1024;
    if (shared_bytes > most_shared || threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.y > 65535 || grid.z > 65535 || grid.x % cluster || (cluster > 1 && !options.warpgroups))
      throw Fault(name_ + ": a grid of " + text(grid) + " blocks of " + text(block) + " threads cannot be launched");
    const unsigned clusters = grid.x / cluster;
    for (std::size_t at : order(std::size_t{clusters} * grid.y * grid.z, block_order_)) {
      const unsigned x = static_cast<unsigned>(at % clusters), rest = static_cast<unsigned>(at / clusters);
      one_cluster({x * cluster, rest % grid.y, rest / grid.y}, cluster, threads, shared_bytes);
      if (fault_.empty()) continue;
      running_ = nullptr;
      throw Fault(fault_);
    }
  }

  void barrier(const Place& place) {
    Block& b = mine();
    if (b.at_barrier > 0 && !same(b.barrier, place))
      fail("threads of one block wait at different barriers, " + text(b.barrier) + " and " + text(place));
    b.barrier = place;
    ++b.at_barrier;
    running_->at_barrier = true;
    wait(place, "the block");
  }
  void barrier_of(int name, int count, const Place& place) {
    NamedBarrier& b = mine().named_barriers[name];
    if (b.arrived > 0 && b.count != count) fail("a barrier of " + std::to_string(b.count) + " and of other threads");
    b.count = count;
    if (++b.arrived < count) {
      running_->at_named_barrier = name;
      return wait(place, "others");
    }
    b.arrived = 0;
    for (Fiber& f : fibers_)
      if (f.at_named_barrier == name && block_of(f) == block_of(*running_)) {
        f.at_named_barrier = 0;
        f.state = State::ready;
      }
  }

  void cluster_barrier(const Place& place) {
    ++at_cluster_barrier_;
    running_->at_cluster_barrier = true;
    wait(place, "the cluster");
  }

  void warp(const Place& place, void* mine, void (*together)(void* const lanes[32])) {
    Warp& w = warps_[static_cast<std::size_t>(running_->slot / 32)];
    if (w.arrived && !same(w.place, place))
      fail("lanes of one warp are at different operations, " + text(w.place) + " and " + text(place));
    w.place = place;
    w.lanes[running_->thread % 32] = mine;
    if (++w.arrived < 32) return wait(place, "its warp");
    together(w.lanes);
    w.arrived = 0;
    const std::size_t first = static_cast<std::size_t>(running_->slot / 32 * 32);
    for (std::size_t i = first; i < first + 32; ++i) fibers_[i].state = State::ready;
  }

  void read_at_once(const void* const rows[8]) {
    bool taken[8] = {};  // banks, by 16 bytes
    for (int i = 0; i < 8; ++i) {
      const auto at = reinterpret_cast<std::uintptr_t>(rows[i]);
      if (at % 16) fail("a row of a matrix is not aligned to 16 bytes");
      conflicts += taken[at / 16 % 8];
      taken[at / 16 % 8] = true;
    }
  }

  void copy_async(const Copy& copy) {
    if (reinterpret_cast<std::uintptr_t>(copy.to) % 16 || reinterpret_cast<std::uintptr_t>(copy.from) % 16)
      fail("an asynchronous copy is not aligned to 16 bytes");
    if (!options.late_copies) return do_copy(copy);
    std::memset(copy.to, 0xff, 16);
    copies_[running_->slot].open.push_back(copy);
  }
  void copy_commit() {
    Copies& mine = copies_[running_->slot];
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
  }
  void copy_wait(int left) {
    Copies& mine = copies_[running_->slot];
    for (; mine.groups.size() > static_cast<std::size_t>(left); mine.groups.pop_front())
      for (const Copy& copy : mine.groups.front()) do_copy(copy);
  }

  /// At a thread's end: a copy still under way may come later than what the kernel does next with its place.
  void all_copies_waited_for() {
    const auto at = copies_.find(running_->slot);
    if (at == copies_.end()) return;
    bool under_way = !at->second.open.empty();
    for (const std::vector<Copy>& group : at->second.groups) under_way = under_way || !group.empty();
    if (under_way) fail("an asynchronous copy is not waited for");
  }

  // ---- sm_90a ----------------------------------------------------------------------------------------------------

  std::uint32_t shared_address(const void* place) { return address_in(mine(), place); }
  void gate_begin(void* gate, int arrivals) {
    if (!options.warpgroups) fail("this GPU has no warpgroups");
    if (reinterpret_cast<std::uintptr_t>(gate) % 8) fail("a gate is not aligned to 8 bytes");
    const auto count = static_cast<std::uint64_t>(arrivals) & 2047;
    set(gate, {0, count, count, 0, sign_of_gates});
    unfenced_[gate] = running_->slot;
  }
  void gate_arrive(void* gate, int bytes) {
    GateState g = state_of(gate);
    if (g.pending == 0) fail("more threads arrive at a gate than it waits for");
    g.bytes += bytes;
    --g.pending;
    advance(gate, g);
  }
  /// What stands at this place of the running block, in another one of the cluster.
  unsigned char* there(void* place, std::size_t block) {
    if (block >= blocks_.size()) fail("there is no such block in the cluster");
    if (blocks_[block].live == 0) fail("a block is spoken to that has ended");
    return shared_of(blocks_[block]) + (static_cast<unsigned char*>(place) - shared());
  }
  void gate_arrive_in(void* gate, int block) { gate_arrive(there(gate, static_cast<std::size_t>(block)), 0); }
  void gate_wait(const void* gate, int parity, const Place& place) {
    if (state_of(gate).parity != static_cast<std::uint64_t>(parity)) return;
    running_->gate = gate;
    wait(place, "a gate");
  }
  /// What this thread did before it is known to asynchronous operations.
  void asynchronous_fence() {
    std::erase_if(unfenced_, [&](const auto& gate) { return gate.second == running_->slot; });
  }
  void copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing) {
    if (sharing > 1 && static_cast<std::size_t>(sharing) != blocks_.size())
      fail("a box is for more blocks than there are");
    for (int i = 0; i < sharing; ++i) {
      const std::size_t block = sharing > 1 ? static_cast<std::size_t>(i) : block_of(*running_);
      const Box box{block, there(to, block), map, there(gate, block), {at[0], at[1], at[2], at[3]}};
      if (unfenced_.contains(box.gate)) fail("a box is copied for a gate that no fence has shown to it");
      (void)state_of(box.gate);
      if (reinterpret_cast<std::uintptr_t>(box.to) % 1024) fail("a box is not aligned to 1024 bytes");
      check_shared(blocks_[block], address_in(blocks_[block], box.to), bytes_of(box));
      if (!options.late_copies) {
        bring(box);
        continue;
      }
      std::memset(box.to, 0xff, static_cast<std::size_t>(bytes_of(box)));
      boxes_.push_back(box);
    }
  }

  Multiplications& multiplications() { return multiplications_[static_cast<std::size_t>(running_->slot / 32)]; }
  void begin_multiplications() { multiplications().begun = true; }
  void commit_multiplications() {
    Multiplications& mine = multiplications();
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
  }
  void wait_for_multiplications(int left) {
    Multiplications& mine = multiplications();
    for (; mine.groups.size() > static_cast<std::size_t>(left); mine.groups.pop_front())
      for (const WarpMultiplication& m : mine.groups.front()) {
        if (!options.late_copies) continue;
        float* sums[32];
        for (int lane = 0; lane < 32; ++lane) sums[lane] = mine.sums.at(m.of_lane[lane].sums).data();
        multiply(m, sums);
      }
    mine.begun = false;  // whoever changes sums now must begin anew
    const auto under_way = [&](float* sums) {
      const auto has = [&](const std::vector<WarpMultiplication>& group) {
        return std::any_of(group.begin(), group.end(), [&](const WarpMultiplication& m) {
          return std::any_of(m.of_lane, m.of_lane + 32, [&](const Multiplication& lane) { return lane.sums == sums; });
        });
      };
      return has(mine.open) || std::any_of(mine.groups.begin(), mine.groups.end(), has);
    };
    std::erase_if(mine.sums, [&](const auto& held) {
      if (!mine.groups.empty() || !mine.open.empty())
        if (under_way(held.first)) return false;
      std::copy(held.second.begin(), held.second.end(), held.first);
      return true;
    });
  }
  void begin_multiplication(const WarpMultiplication& m) {
    Multiplications& mine = multiplications();
    if (!mine.begun) fail("a multiplication whose sums may still be written: none has begun");
    const Multiplication& first = m.of_lane[0];
    for (const Multiplication& lane : m.of_lane)
      if (lane.left != first.left || lane.right != first.right) fail("lanes of one warp multiply different matrices");
    auto& all = multiplied_[static_cast<std::size_t>(running_->slot / 128)];
    if (mine.issued == all.size()) all.emplace_back(first.left, first.right);
    if (all[mine.issued++] != std::pair(first.left, first.right))
      fail("warps of one group multiply different matrices");
    if (!options.late_copies) {
      float* sums[32];
      for (int lane = 0; lane < 32; ++lane) sums[lane] = m.of_lane[lane].sums;
      return multiply(m, sums);
    }
    for (const Multiplication& lane : m.of_lane) {
      const auto [at, fresh] = mine.sums.try_emplace(lane.sums);
      if (!fresh) continue;
      at->second.assign(lane.sums, lane.sums + lane.columns / 2);
      std::fill_n(lane.sums, lane.columns / 2, std::numeric_limits<float>::quiet_NaN());
    }
    mine.open.push_back(m);
  }
  void all_multiplications_waited_for() {
    const Multiplications& mine = multiplications();
    if (options.late_copies && !mine.sums.empty()) fail("a multiplication is not waited for");
  }

  [[noreturn]] void fail(const std::string& what) {
    if (!running_) {
      give_back_all();
      throw Fault(name_ + ": " + what + "; " + schedule());
    }
    fault_ = name_ + ": " + what + "; block " + text(running_->block) + ", thread " + std::to_string(running_->thread) +
             ", " + schedule();
    for (;;) to_main();
  }

  Fiber* running() { return running_; }
  const dim3& block() const { return block_; }
  unsigned char* shared() { return shared_of(mine()); }

  Options options;
  std::int64_t conflicts = 0;

 private:
  static std::string text(const dim3& d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
  }
  static std::string text(const Place& place) { return cuda_host::text(place); }
  std::string schedule() const {
    std::string s = options.schedule == Schedule::fixed      ? "fixed schedule"
                    : options.schedule == Schedule::reversed ? "reversed schedule"
                                                             : "random schedule, seed " + std::to_string(options.seed);
    return s + (options.late_copies ? ", late copies" : ", early copies");
  }

  /// 0 to before `count` as the schedule has them.
  const std::vector<std::size_t>& order(std::size_t count, std::vector<std::size_t>& at) {
    at.resize(count);
    std::iota(at.begin(), at.end(), std::size_t{0});
    if (options.schedule == Schedule::reversed) std::reverse(at.begin(), at.end());
    if (options.schedule == Schedule::random) std::shuffle(at.begin(), at.end(), random_);
    return at;
  }

  void one_cluster(dim3 first, unsigned cluster, std::size_t threads, std::size_t shared_bytes) {
    threads_ = (threads + 127) / 128 * 128;
    fibers_.assign(cluster * threads_, Fiber{});
    warps_.assign(fibers_.size() / 32, Warp{});
    copies_.clear();
    boxes_.clear();
    unfenced_.clear();
    multiplications_.assign(warps_.size(), Multiplications{});
    multiplied_.assign(fibers_.size() / 128, {});
    at_cluster_barrier_ = 0;
    blocks_.assign(cluster, Block{});
    std::size_t live = cluster * threads;
    for (unsigned i = 0; i < cluster; ++i) {
      Block& b = blocks_[i];
      b.live = threads;
      b.shared.assign(shared_bytes + 1024, 0xff);  // not-a-number, in single precision as in bf16
      b.shared_from = 1023 - (reinterpret_cast<std::uintptr_t>(b.shared.data()) + 1023) % 1024;
      b.shared.resize(b.shared_from + shared_bytes);
      for (std::size_t t = 0; t < threads; ++t) {
        Fiber& f = fibers_[i * threads_ + t];
        f.state = State::ready;
        f.slot = static_cast<int>(i * threads_ + t);
        f.thread = static_cast<int>(t);
        f.block = {first.x + i, first.y, first.z};
      }
    }
    // A warp goes on as far as it can before the next one begins: what needs a barrier and has none shows. In random
    // order it is sometimes held up.
    while (live > 0) {
      bool ran = false;
      for (std::size_t w : order(warps_.size(), warp_order_))
        for (bool again = true; again;) {
          again = false;
          for (std::size_t lane : order(32, lane_order_)) {
            Fiber& f = fibers_[32 * w + lane];
            if (f.state != State::ready) continue;
            Block& b = blocks_[block_of(f)];
            step(f);
            if (!fault_.empty()) return give_back_all();
            if (f.state == State::done) {
              --live;
              --b.live;
            }
            if (b.at_barrier > 0 && b.at_barrier == b.live) release(b);
            if (at_cluster_barrier_ > 0 && at_cluster_barrier_ == live) release_cluster();
            ran = again = true;
          }
          if (options.schedule == Schedule::random && random_() % 4 == 0) again = false;
        }
      if (ran || live == 0) continue;
      if (!boxes_.empty()) {
        bring_one();
        continue;
      }
      for (Fiber& f : fibers_)
        if (f.state == State::waiting) {
          fault_ = name_ + ": nobody can go on; block " + text(f.block) + ", thread " + std::to_string(f.thread) +
                   " waits at " + text(f.place) + " for " + f.whom + ", " + schedule();
          return give_back_all();
        }
    }
    if (!boxes_.empty()) fault_ = name_ + ": a block ends before all boxes are there, " + schedule();
  }

  std::size_t block_of(const Fiber& f) const { return static_cast<std::size_t>(f.slot) / threads_; }
  Block& mine() { return blocks_[block_of(*running_)]; }
  static unsigned char* shared_of(Block& b) { return b.shared.data() + b.shared_from; }

  // ---- sm_90a ----------------------------------------------------------------------------------------------------

  GateState state_of(const void* gate) {
    GateState g;
    std::memcpy(&g, gate, sizeof g);
    if (g.sign != sign_of_gates) fail("what should be a gate is none");
    return g;
  }
  static void set(void* gate, const GateState& g) { std::memcpy(gate, &g, sizeof g); }
  /// Ends the phase where nothing is missing.
  void advance(void* gate, GateState g) {
    if (g.pending == 0 && g.bytes == 0) {
      g.parity ^= 1;
      g.pending = g.expected;
      for (Fiber& f : fibers_)
        if (f.gate == gate) {
          f.gate = nullptr;
          f.state = State::ready;
        }
    }
    set(gate, g);
  }

  static int bytes_of(const Box& box) { return 128 * box.map.lines; }
  static std::uint32_t address_in(Block& b, const void* place) {
    return shared_begin + static_cast<std::uint32_t>(static_cast<const unsigned char*>(place) - shared_of(b));
  }
  void check_shared(const Block& b, std::uint32_t address, int bytes) {
    if (address < shared_begin || address + static_cast<std::uint32_t>(bytes) - shared_begin >
                                      static_cast<std::uint32_t>(b.shared.size() - b.shared_from))
      fail("memory outside of the block's shared memory is touched");
  }
  void bring(const Box& box) {
    Block& b = blocks_[box.block];
    if (b.live == 0) fail("a box arrives in a block that has ended");
    const std::uint32_t to = address_in(b, box.to);
    for (int line = 0; line < box.map.lines; ++line)
      for (int i = 0; i < 64; ++i) {
        const std::int64_t at[4] = {std::int64_t{box.at[0]} + i, std::int64_t{box.at[1]} + line, box.at[2], box.at[3]};
        const auto* from = static_cast<const unsigned char*>(box.map.first);
        bool inside = true;
        for (int d = 0; d < 4; ++d) {
          inside = inside && at[d] >= 0 && at[d] < box.map.extents[d];
          from += at[d] * box.map.strides[d];
        }
        unsigned char* const there =
            shared_of(b) + swizzled_128(to + static_cast<std::uint32_t>(128 * line + 2 * i)) - shared_begin;
        if (inside)
          std::memcpy(there, from, 2);
        else
          std::memset(there, 0, 2);
      }
    GateState g = state_of(box.gate);
    g.bytes -= bytes_of(box);
    advance(box.gate, g);
  }
  /// Nobody can go on: one of the boxes is there.
  void bring_one() {
    std::size_t which = options.schedule == Schedule::reversed ? boxes_.size() - 1 : 0;
    if (options.schedule == Schedule::random) which = random_() % boxes_.size();
    const Box box = boxes_[which];
    boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(which));
    bring(box);
  }

  /// A number of a matrix that a descriptor tells of: PTX ISA, "Matrix descriptor format" and "Strides", for 128-byte
  /// swizzling.
  float number_of(std::uint64_t descriptor, bool across, int point, int depth) {
    const auto field = [&](int bit) { return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4; };
    const std::uint32_t start = field(0), leading = field(16), stride = field(32);
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0) fail("a descriptor is not of 128-byte swizzling");
    const auto p = static_cast<std::uint32_t>(point), k = static_cast<std::uint32_t>(depth);
    const std::uint32_t offset =
        across ? p / 64 * leading + p % 64 * 2 + k / 8 * stride + k % 8 * 128 : p / 8 * stride + p % 8 * 128 + k * 2;
    const std::uint32_t address = swizzled_128(start + offset);
    check_shared(mine(), address, 2);
    return number_at(shared() + address - shared_begin);
  }
  /// The fragments of wgmma.m64nNk16, PTX ISA, "Register fragments".
  void multiply(const WarpMultiplication& m, float* const (&sums)[32]) {
    const Multiplication& first = m.of_lane[0];
    const int first_row = running_->thread / 32 % 4 * 16, columns = first.columns;
    float left[16][16], right[16][256], product[16][256];
    for (int k = 0; k < 16; ++k) {
      for (int row = 0; row < 16; ++row) left[row][k] = number_of(first.left, first.left_across, first_row + row, k);
      for (int column = 0; column < columns; ++column)
        right[k][column] = number_of(first.right, first.right_across, column, k);
    }
    const auto each = [&](auto what) {
      for (int lane = 0; lane < 32; ++lane)
        for (int i = 0; i < columns / 2; ++i)
          what(sums[lane][i], product[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2]);
    };
    each([](float sum, float& number) { number = sum; });
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < columns; ++column) product[row][column] += left[row][k] * right[k][column];
    each([](float& sum, float number) { sum = number; });
  }

  /// The barrier opens.
  void release(Block& b) {
    b.at_barrier = 0;
    for (Fiber& f : fibers_) {
      if (!f.at_barrier || &blocks_[block_of(f)] != &b) continue;
      f.at_barrier = false;
      f.state = State::ready;
    }
  }
  void release_cluster() {
    at_cluster_barrier_ = 0;
    for (Fiber& f : fibers_) {
      if (!f.at_cluster_barrier) continue;
      f.at_cluster_barrier = false;
      f.state = State::ready;
    }
  }

  void step(Fiber& f) {
    if (f.stack < 0) begin(f);
    running_ = &f;
    tessera_switch_stacks(&main_, f.stack_pointer);
    running_ = nullptr;
    if (f.state == State::done) give_back(f);
  }
  void begin(Fiber& f) {
    if (free_stacks_.empty()) {
      free_stacks_.push_back(static_cast<int>(stacks_.size()));
      stacks_.push_back(std::make_unique<unsigned char[]>(stack_bytes));
    }
    f.stack = free_stacks_.back();
    free_stacks_.pop_back();
    const auto top = reinterpret_cast<std::uintptr_t>(stacks_[static_cast<std::size_t>(f.stack)].get()) + stack_bytes;
    void** at = reinterpret_cast<void**>(top & ~std::uintptr_t{15});
    *--at = nullptr;  // the return address of `entry`, which never returns
    *--at = reinterpret_cast<void*>(&entry);
    f.stack_pointer = at - 6;  // six registers, of no matter which value
  }
  void give_back(Fiber& f) {
    if (f.stack >= 0) free_stacks_.push_back(f.stack);
    f.stack = -1;
  }
  void give_back_all() {
    for (Fiber& f : fibers_) give_back(f);
  }
  static void entry();

  void wait(const Place& place, const char* whom) {
    running_->place = place;
    running_->whom = whom;
    running_->state = State::waiting;
    to_main();
  }
  void to_main() { tessera_switch_stacks(&running_->stack_pointer, main_); }

  static void do_copy(const Copy& copy) {
    std::memset(copy.to, 0, 16);
    if (copy.valid > 0) std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.valid));
  }

  std::string name_, fault_;
  const std::function<void()>* kernel_ = nullptr;
  dim3 block_;
  std::mt19937_64 random_;
  std::vector<std::size_t> block_order_, warp_order_, lane_order_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::map<int, Copies> copies_;                  ///< by thread
  std::vector<Box> boxes_;                        ///< on their way
  std::map<const void*, int> unfenced_;           ///< gates, and the thread that began them
  std::vector<Multiplications> multiplications_;  ///< by warp
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> multiplied_;  ///< by warpgroup: descriptors
  std::vector<Block> blocks_;                                                     ///< of the cluster
  std::size_t threads_ = 0;                                                       ///< of a block, filled up
  std::size_t at_cluster_barrier_ = 0;
  std::vector<std::unique_ptr<unsigned char[]>> stacks_;
  std::vector<int> free_stacks_;
  Fiber* running_ = nullptr;
  void* main_ = nullptr;
};

Launch the_launch;

void Launch::entry() {
  (*the_launch.kernel_)();
  the_launch.all_copies_waited_for();
  the_launch.all_multiplications_waited_for();
  the_launch.running_->state = State::done;
  for (;;) the_launch.to_main();
}

/// A touch of the pages around a DeviceArray, in a kernel, is the kernel's fault; elsewhere it is what it always is.
void on_bad_address(int signal, siginfo_t*, void*) {
  if (the_launch.running()) the_launch.fail("memory outside of every array is touched");
  ::signal(signal, SIG_DFL);
}

void catch_bad_addresses() {
  static std::vector<unsigned char> stack(64 * 1024);
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  sigaltstack(&other, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_bad_address;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

void use(const Options& options) { the_launch.options = options; }
std::int64_t bank_conflicts() { return the_launch.conflicts; }

void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
         unsigned cluster) {
  static const bool caught = (catch_bad_addresses(), true);
  (void)caught;
  the_launch.run(name, grid, block, shared_bytes, kernel, cluster);
}

const Thread& current() { return *the_launch.running(); }
const dim3& block_size() { return the_launch.block(); }
unsigned char* shared_bytes() { return the_launch.shared(); }
void barrier(const Place& place) { the_launch.barrier(place); }
void warp(const Place& place, void* mine, void (*together)(void* const lanes[32])) {
  the_launch.warp(place, mine, together);
}
void copy_async(void* to, const void* from, int valid) {
  the_launch.copy_async({static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), valid});
}
void copy_commit() { the_launch.copy_commit(); }
void copy_wait(int left) { the_launch.copy_wait(left); }
void read_at_once(const void* const rows[8]) { the_launch.read_at_once(rows); }

bool has_warpgroups() { return the_launch.options.warpgroups; }
bool is_possible(const TensorMap& map) {
  bool possible = reinterpret_cast<std::uintptr_t>(map.first) % 16 == 0 && map.lines >= 1 && map.lines <= 256;
  for (int d = 0; d < 4; ++d) {
    possible = possible && map.extents[d] >= 1 && map.extents[d] <= std::int64_t{1} << 32;
    if (d > 0)
      possible = possible && map.strides[d] % 16 == 0 && map.strides[d] >= 0 && map.strides[d] < std::int64_t{1} << 40;
  }
  return possible;
}
std::uint32_t shared_address(const void* place) { return the_launch.shared_address(place); }
void gate_begin(void* gate, int arrivals) { the_launch.gate_begin(gate, arrivals); }
void gate_arrive(void* gate, int bytes) { the_launch.gate_arrive(gate, bytes); }
void gate_wait(const void* gate, int parity, const Place& place) { the_launch.gate_wait(gate, parity, place); }
void asynchronous_fence() { the_launch.asynchronous_fence(); }
void copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing) {
  the_launch.copy_box(to, map, gate, at, sharing);
}
void gate_arrive_in(void* gate, int block) { the_launch.gate_arrive_in(gate, block); }
void cluster_barrier(const Place& place) { the_launch.cluster_barrier(place); }
void barrier_of(int name, int count, const Place& place) { the_launch.barrier_of(name, count, place); }
void multiplications_begin(const Place& place) {
  warp(place, nullptr, [](void* const[32]) { the_launch.begin_multiplications(); });
}
void multiplications_commit(const Place& place) {
  warp(place, nullptr, [](void* const[32]) { the_launch.commit_multiplications(); });
}
void multiplications_wait(int left, const Place& place) {
  warp(place, &left, [](void* const lanes[32]) { the_launch.wait_for_multiplications(*static_cast<int*>(lanes[0])); });
}
void multiply_add_async(const Multiplication& mine, const Place& place) {
  Multiplication handed_in = mine;
  warp(place, &handed_in, [](void* const lanes[32]) {
    WarpMultiplication m;
    for (int lane = 0; lane < 32; ++lane) m.of_lane[lane] = *static_cast<const Multiplication*>(lanes[lane]);
    the_launch.begin_multiplication(m);
  });
}

}  // namespace tessera::cuda_host
