// What kernels for sm_90a ask for: gates, boxes, clusters and multiplications by warpgroups.
#include <algorithm>
#include <limits>

#include "tests/cuda/host/launch.hpp"

namespace tessera::cuda_host {

namespace {

constexpr std::uint64_t sign_of_gates = 0x6a7e;
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

}  // namespace

void Launch::gate_begin(void* gate, int arrivals) {
  if (!options.warpgroups) fail("this GPU has no warpgroups");
  if (reinterpret_cast<std::uintptr_t>(gate) % 8) fail("a gate is not aligned to 8 bytes");
  const auto count = static_cast<std::uint64_t>(arrivals) & 2047;
  set(gate, {0, count, count, 0, sign_of_gates});
  const races::As machine(machine_);
  unfenced_[gate] = running_->slot;
}

void Launch::gate_arrive(void* gate, int bytes) {
  races::tell(phase_of(gate, state_of(gate).parity));
  arrive(gate, bytes);
}

void Launch::arrive(void* gate, int bytes) {
  GateState g = state_of(gate);
  if (g.pending == 0) fail("more threads arrive at a gate than it waits for");
  g.bytes += bytes;
  --g.pending;
  advance(gate, g);
}

/// What stands at this place of the running block, in another one of the cluster.
unsigned char* Launch::there(void* place, std::size_t block) {
  if (block >= blocks_.size()) fail("there is no such block in the cluster");
  if (blocks_[block].live == 0) fail("a block is spoken to that has ended");
  return shared_of(blocks_[block]) + (static_cast<unsigned char*>(place) - shared());
}

/// Of what the thread did, multiplications that have been waited for are all that is told.
void Launch::gate_arrive_in(void* gate, int block) {
  const auto to = static_cast<std::size_t>(block);
  void* const its = there(gate, to);
  if (const int waited_for = multiplications().waited_for; waited_for >= 0) {
    const races::As multiplied(identity(waited_for));
    races::tell(phase_of(its, state_of(its).parity));
  }
  if (!options.late_copies || to == block_of(*running_)) return arrive(its, 0);
  const races::As machine(machine_);
  arrivals_.push_back({to, its});
}

void Launch::arrive_late(std::size_t which) {
  const Arrival arrival = arrivals_[which];
  arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(which));
  arrive(arrival.gate, 0);
}

void Launch::gate_wait(const void* gate, int parity, const Place& place) {
  if (state_of(gate).parity == static_cast<std::uint64_t>(parity)) {
    running_->gate = gate;
    wait(place, "a gate");
  }
  races::learn(phase_of(gate, static_cast<std::uint64_t>(parity)));
}

/// What this thread did before it is known to asynchronous operations.
void Launch::asynchronous_fence() {
  const races::As machine(machine_);
  std::erase_if(unfenced_, [&](const auto& gate) { return gate.second == running_->slot; });
}

void Launch::barrier_of(int name, int count, const Place& place) {
  NamedBarrier& b = [&]() -> NamedBarrier& {
    const races::As machine(machine_);
    return mine().named_barriers[name];
  }();
  if (b.arrived > 0 && b.count != count) fail("a barrier of " + std::to_string(b.count) + " and of other threads");
  b.count = count;
  if (name > 0) converged_at_barrier(place);  // a warp's own barrier is not aligned
  const void* const phase = b.phases.current();
  races::tell(phase);
  if (++b.arrived < count) {
    running_->at_named_barrier = name;
    wait(place, "others");
    return races::learn(phase);
  }
  races::learn(phase);
  b.arrived = 0;
  ++b.phases.now;
  for (Fiber& f : fibers_)
    if (f.at_named_barrier == name && block_of(f) == block_of(*running_)) {
      f.at_named_barrier = 0;
      f.state = State::ready;
    }
}

/// Where it does not release, multiplications that have been waited for are all that is told of what was done before
/// it.
void Launch::cluster_barrier(bool releases, const Place& place) {
  if (at_cluster_barrier_ > 0 && cluster_barrier_releases_ != releases)
    fail("threads of one cluster wait at different barriers");
  cluster_barrier_releases_ = releases;
  converged_at_barrier(place);
  const void* const phase = blocks_.front().cluster_phases.current();
  if (releases) races::tell(phase);
  if (const int waited_for = multiplications().waited_for; waited_for >= 0) {
    const races::As multiplied(identity(waited_for));
    races::tell(phase);
  }
  ++at_cluster_barrier_;
  running_->at_cluster_barrier = true;
  wait(place, "the cluster");
  races::learn(phase);
}

GateState Launch::state_of(const void* gate) {
  GateState g;
  std::memcpy(&g, gate, sizeof g);
  if (g.sign != sign_of_gates) fail("what should be a gate is none");
  return g;
}

/// Ends the phase where nothing is missing.
void Launch::advance(void* gate, GateState g) {
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

std::uint32_t Launch::address_in(Block& b, const void* place) {
  return shared_begin + static_cast<std::uint32_t>(static_cast<const unsigned char*>(place) - shared_of(b));
}

void Launch::check_shared(const Block& b, std::uint32_t address, int bytes) {
  if (address < shared_begin || address + static_cast<std::uint32_t>(bytes) - shared_begin >
                                    static_cast<std::uint32_t>(b.shared.size() - b.shared_from))
    fail("memory outside of the block's shared memory is touched");
}

void Launch::copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing, int blocks,
                      const void* place) {
  if (sharing > 1 && (blocks <= 0 || blocks >> blocks_.size() != 0)) fail("a box is for blocks that are not there");
  if (sharing == 1) blocks = 1 << block_of(*running_);
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    if (!(blocks >> block & 1)) continue;
    const Box box{block, there(to, block), map, there(gate, block), {at[0], at[1], at[2], at[3]}};
    if (unfenced_.contains(box.gate)) fail("a box is copied for a gate that no fence has shown to it");
    (void)state_of(box.gate);
    if (reinterpret_cast<std::uintptr_t>(box.to) % 1024) fail("a box is not aligned to 1024 bytes");
    check_shared(blocks_[block], address_in(blocks_[block], box.to), bytes_of(box));
    tell_of(box, place);
    races::tell(phase_of(box.gate, state_of(box.gate).parity));
    const races::As machine(machine_);
    if (!options.late_copies) {
      bring(box);
      continue;
    }
    std::memset(box.to, 0xff, static_cast<std::size_t>(bytes_of(box)));
    boxes_.push_back(box);
  }
}

/// To ThreadSanitizer it is the thread that copies, when it asks for it; and who waits at the gate learns of it.
void Launch::tell_of(const Box& box, const void* place) {
  races::writes(box.to, static_cast<std::size_t>(bytes_of(box)), place);
  const auto inside = [&](int d, int at) { return at >= 0 && at < box.map.extents[d]; };
  const int first = std::max(box.at[0], 0);
  const std::int64_t count = std::min<std::int64_t>(box.at[0] + 64, box.map.extents[0]) - first;
  for (int line = box.at[1]; line < box.at[1] + box.map.lines && count > 0; ++line)
    if (inside(1, line) && inside(2, box.at[2]) && inside(3, box.at[3]))
      races::reads(static_cast<const unsigned char*>(box.map.first) + first * box.map.strides[0] +
                       line * box.map.strides[1] + box.at[2] * box.map.strides[2] + box.at[3] * box.map.strides[3],
                   static_cast<std::size_t>(2 * count), place);
}

void Launch::bring(const Box& box) {
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

/// Nobody can go on: one of the boxes is there, or one of the arrivals.
void Launch::bring_one() {
  const std::size_t count = boxes_.size() + arrivals_.size();
  std::size_t which = options.schedule == Schedule::reversed ? count - 1 : 0;
  if (options.schedule == Schedule::random) which = random_() % count;
  if (which >= boxes_.size()) return arrive_late(which - boxes_.size());
  const Box box = boxes_[which];
  boxes_.erase(boxes_.begin() + static_cast<std::ptrdiff_t>(which));
  bring(box);
}

void Launch::commit_multiplications() {
  Multiplications& mine = multiplications();
  if (mine.reader >= 0) {
    const races::As reader(identity(mine.reader));
    races::tell(&mine.of_groups[mine.committed++ % 8]);
  }
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

void Launch::begin_multiplication(const WarpMultiplication& m) {
  Multiplications& mine = multiplications();
  if (!mine.begun) fail("a multiplication whose sums may still be written: none has begun");
  const Multiplication& first = m.of_lane[0];
  for (const Multiplication& lane : m.of_lane)
    if (lane.left != first.left || lane.right != first.right) fail("lanes of one warp multiply different matrices");
  auto& all = multiplied_[static_cast<std::size_t>(running_->slot / 128)];
  if (mine.issued == all.size()) all.emplace_back(first.left, first.right);
  if (all[mine.issued++] != std::pair(first.left, first.right)) fail("warps of one group multiply different matrices");
  if (races::looked_for) tell_of(first);
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

void Launch::wait_for_multiplications(int left) {
  Multiplications& mine = multiplications();
  if (mine.reader >= 0 && mine.groups.size() > static_cast<std::size_t>(left)) {
    const void* const last = &mine.of_groups[(mine.committed - static_cast<std::size_t>(left) - 1) % 8];
    const auto learn = [last](races::Identity who) {
      const races::As its(who);
      races::learn(last);
    };
    learn(identity(mine.waited_for));
    const std::size_t first = static_cast<std::size_t>(running_->slot / 32 * 32);
    for (std::size_t i = first; i < first + 32; ++i) learn(fibers_[i].identity);
  }
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

void Launch::all_multiplications_waited_for() {
  const Multiplications& mine = multiplications();
  if (options.late_copies && !mine.sums.empty()) fail("a multiplication is not waited for");
}

/// Where a number of a matrix lies that a descriptor tells of: PTX ISA, "Matrix descriptor format" and "Strides", for
/// 128-byte swizzling.
const unsigned char* Launch::place_of(std::uint64_t descriptor, bool across, int point, int depth) {
  const auto field = [&](int bit) { return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4; };
  const std::uint32_t start = field(0), leading = field(16), stride = field(32);
  if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0) fail("a descriptor is not of 128-byte swizzling");
  const auto p = static_cast<std::uint32_t>(point), k = static_cast<std::uint32_t>(depth);
  const std::uint32_t offset =
      across ? p / 64 * leading + p % 64 * 2 + k / 8 * stride + k % 8 * 128 : p / 8 * stride + p % 8 * 128 + k * 2;
  const std::uint32_t address = swizzled_128(start + offset);
  check_shared(mine(), address, 2);
  return shared() + address - shared_begin;
}

/// To ThreadSanitizer a warp's multiplications are a thread, which knows what the warp's first lane knows when it asks
/// for one, and of which the warp learns when it has waited.
void Launch::tell_of(const Multiplication& first) {
  Multiplications& mine = multiplications();
  if (mine.reader < 0) mine.reader = take(), mine.waited_for = take();
  {
    const races::As lane(fibers_[static_cast<std::size_t>(running_->slot / 32 * 32)].identity);
    races::tell(&mine.of_lanes);
  }
  const races::As reader(identity(mine.reader));
  races::learn(&mine.of_lanes);
  const auto reads = [&](std::uint64_t descriptor, bool across, int begin, int count) {
    for (int point = begin; point < begin + count; point += across ? 8 : 1)
      for (int depth = 0; depth < 16; depth += across ? 1 : 8)
        races::reads(place_of(descriptor, across, point, depth), 16, first.place);
  };
  reads(first.left, first.left_across, running_->thread / 32 % 4 * 16, 16);
  reads(first.right, first.right_across, 0, first.columns);
}

/// The fragments of wgmma.m64nNk16, PTX ISA, "Register fragments".
void Launch::multiply(const WarpMultiplication& m, float* const (&sums)[32]) {
  const Multiplication& first = m.of_lane[0];
  const int first_row = running_->thread / 32 % 4 * 16, columns = first.columns;
  float left[16][16], right[16][256], product[16][256];
  for (int k = 0; k < 16; ++k) {
    for (int row = 0; row < 16; ++row)
      left[row][k] = number_at(place_of(first.left, first.left_across, first_row + row, k));
    for (int column = 0; column < columns; ++column)
      right[k][column] = number_at(place_of(first.right, first.right_across, column, k));
  }
  const auto each = [&](auto what) {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < columns / 2; ++i)
        what(sums[lane][i], product[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2]);
  };
  each([](float sum, float& number) { number = sum; });
  for (int row = 0; row < 16; ++row)
    if (options.products_at_once == 0) {  // as with_products, but faster
      for (int k = 0; k < 16; ++k)
        for (int column = 0; column < columns; ++column) product[row][column] += left[row][k] * right[k][column];
    } else {
      for (int column = 0; column < columns; ++column) {
        float products[16];
        for (int k = 0; k < 16; ++k) products[k] = left[row][k] * right[k][column];
        product[row][column] = with_products(product[row][column], products);
      }
    }
  each([](float& sum, float number) { sum = number; });
}

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
void copy_box(void* to, const TensorMap& map, void* gate, const int (&at)[4], int sharing, int blocks) {
  the_launch.copy_box(to, map, gate, at, sharing, blocks, __builtin_return_address(0));
}
void gate_arrive_in(void* gate, int block) { the_launch.gate_arrive_in(gate, block); }
void cluster_barrier(bool releases, const Place& place) { the_launch.cluster_barrier(releases, place); }
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
  handed_in.place = __builtin_return_address(0);
  warp(place, &handed_in, [](void* const lanes[32]) {
    WarpMultiplication m;
    for (int lane = 0; lane < 32; ++lane) m.of_lane[lane] = *static_cast<const Multiplication*>(lanes[lane]);
    the_launch.begin_multiplication(m);
  });
}

}  // namespace tessera::cuda_host
