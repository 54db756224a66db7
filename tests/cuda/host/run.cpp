#include "tests/cuda/host/run.hpp"

#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/cuda/host/launch.hpp"

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

Launch the_launch;

namespace {

constexpr std::size_t stack_bytes = 128 * 1024;
constexpr unsigned most_of_a_cluster = 8;  ///< blocks that every GPU finds room for together
constexpr std::size_t told_apart = 512;    ///< threads, where races are looked for; or all of two clusters

std::string text(const dim3& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}
std::string text(const Place& place) {
  std::string file = place.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}
bool same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

void do_copy(const Copy& copy) {
  std::memset(copy.to, 0, 16);
  if (copy.valid > 0) std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.valid));
}

}  // namespace

/// From a kernel's start to its end, in which no other kernel and nothing else runs.
struct Launch::Alone {
  explicit Alone(Launch& launch) : launch_(launch) {
    launch_.machine_ = races::running();
    races::tell(&launch_.begun_);
    races::look_away(true);
  }
  ~Alone() {
    launch_.running_ = nullptr;
    launch_.give_back_all();
    races::look_away(false);
    races::learn(&launch_.ended_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  Launch& launch_;
};

void Launch::run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
                 unsigned cluster) {
  name_ = name;
  kernel_ = &kernel;
  block_ = block;
  grid_ = grid;
  fault_.clear();
  random_.seed(options.seed);
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  if (shared_bytes > most_shared_bytes() || cluster > most_of_a_cluster || threads == 0 || threads > 1024 ||
      grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535 || grid.x % cluster ||
      (cluster > 1 && !options.warpgroups))
    throw Fault(name_ + ": a grid of " + text(grid) + " blocks of " + text(block) + " threads cannot be launched");
  const Alone alone(*this);
  const unsigned clusters = grid.x / cluster;
  for (std::size_t at : order(std::size_t{clusters} * grid.y * grid.z, block_order_)) {
    const unsigned x = static_cast<unsigned>(at % clusters), rest = static_cast<unsigned>(at / clusters);
    one_cluster({x * cluster, rest % grid.y, rest / grid.y}, cluster, threads, shared_bytes);
    give_back_all();
    if (!fault_.empty()) break;
  }
  if (!fault_.empty()) throw Fault(fault_);
}

/// What tells one way of calls to here from another: of the return addresses on the thread's stack, which frame
/// pointers lead to.
std::uintptr_t Launch::calls() const {
  const auto end =
      reinterpret_cast<std::uintptr_t>(stacks_[static_cast<std::size_t>(running_->stack)].get()) + stack_bytes;
  std::uintptr_t all = 0, at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  for (std::uintptr_t before = 0; at > before && at + 16 <= end;) {
    const auto* const frame = reinterpret_cast<const std::uintptr_t*>(at);
    all = all * 31 + frame[1];
    before = at;
    at = frame[0];
  }
  return all;
}

/// All lanes of a warp that come to an aligned instruction come as the first of them did.
void Launch::converged(bool first, std::uintptr_t& calls_of_first, const Place& place) {
  const std::uintptr_t mine = calls();
  if (first) calls_of_first = mine;
  if (mine != calls_of_first)
    fail("lanes of one warp come to " + text(place) + " by different ways: they have not converged");
}
void Launch::converged_at_barrier(const Place& place) {
  Warp& w = warps_[static_cast<std::size_t>(running_->slot / 32)];
  converged(w.at_barrier == 0, w.to_barrier, place);
  const int lanes = std::min(32, static_cast<int>(cluster_threads_ / blocks_.size()) - running_->thread / 32 * 32);
  if (++w.at_barrier == lanes) w.at_barrier = 0;
}

void Launch::barrier(const Place& place) {
  Block& b = mine();
  if (b.at_barrier > 0 && !same(b.barrier, place))
    fail("threads of one block wait at different barriers, " + text(b.barrier) + " and " + text(place));
  converged_at_barrier(place);
  b.barrier = place;
  ++b.at_barrier;
  running_->at_barrier = true;
  const void* const phase = b.phases.current();
  races::tell(phase);
  wait(place, "the block");
  races::learn(phase);
}

void Launch::warp(const Place& place, void* mine, void (*together)(void* const lanes[32]), bool aligned) {
  Warp& w = warps_[static_cast<std::size_t>(running_->slot / 32)];
  if (w.arrived && !same(w.place, place))
    fail("lanes of one warp are at different operations, " + text(w.place) + " and " + text(place));
  if (aligned) converged(w.arrived == 0, w.calls, place);
  w.place = place;
  w.lanes[running_->thread % 32] = mine;
  if (++w.arrived < 32) return wait(place, "its warp");
  {
    const races::As machine(machine_);
    together(w.lanes);
  }
  w.arrived = 0;
  const std::size_t first = static_cast<std::size_t>(running_->slot / 32 * 32);
  for (std::size_t i = first; i < first + 32; ++i) fibers_[i].state = State::ready;
}

void Launch::read_at_once(const void* const rows[8]) {
  bool taken[8] = {};  // banks, by 16 bytes
  for (int i = 0; i < 8; ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(rows[i]);
    if (at % 16) fail("a row of a matrix is not aligned to 16 bytes");
    conflicts += taken[at / 16 % 8];
    taken[at / 16 % 8] = true;
  }
}

void Launch::tell_of(const Copy& copy) {
  races::reads(copy.from, static_cast<std::size_t>(copy.valid), copy.place);
  races::writes(copy.to, 16, copy.place);
}

/// To ThreadSanitizer it is the thread that copies, and it does so twice: when it asks for the copy and when it has
/// waited for it, between which nobody else may touch the place.
void Launch::copy_async(const Copy& copy) {
  if (reinterpret_cast<std::uintptr_t>(copy.to) % 16 || reinterpret_cast<std::uintptr_t>(copy.from) % 16)
    fail("an asynchronous copy is not aligned to 16 bytes");
  tell_of(copy);
  const races::As machine(machine_);
  if (!options.late_copies) return do_copy(copy);
  std::memset(copy.to, 0xff, 16);
  copies_[running_->slot].open.push_back(copy);
}

void Launch::copy_commit() {
  const races::As machine(machine_);
  Copies& mine = copies_[running_->slot];
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

void Launch::copy_wait(int left) {
  const races::As machine(machine_);
  Copies& mine = copies_[running_->slot];
  for (; mine.groups.size() > static_cast<std::size_t>(left); mine.groups.pop_front()) {
    for (const Copy& copy : mine.groups.front()) do_copy(copy);
    const races::As thread(running_->identity);
    for (const Copy& copy : mine.groups.front()) tell_of(copy);
  }
}

/// At a thread's end: a copy still under way may come later than what the kernel does next with its place.
void Launch::all_copies_waited_for() {
  const auto at = copies_.find(running_->slot);
  if (at == copies_.end()) return;
  bool under_way = !at->second.open.empty();
  for (const std::vector<Copy>& group : at->second.groups) under_way = under_way || !group.empty();
  if (under_way) fail("an asynchronous copy is not waited for");
}

void Launch::fail(const std::string& what) {
  if (!running_) {
    fault_ = name_ + ": " + what + "; " + schedule();
    throw Fault(fault_);
  }
  fault_ = sentence(*running_, what);
  for (;;) to_main();
}

std::string Launch::sentence(const Fiber& thread, const std::string& what) const {
  return name_ + ": " + what + "; block " + text(thread.block) + ", thread " + std::to_string(thread.thread) + ", " +
         schedule();
}

std::string Launch::schedule() const {
  std::string s = options.schedule == Schedule::fixed      ? "fixed schedule"
                  : options.schedule == Schedule::reversed ? "reversed schedule"
                                                           : "random schedule, seed " + std::to_string(options.seed);
  return s + (options.late_copies ? ", late copies" : ", early copies");
}

/// 0 to before `count` as the schedule has them.
const std::vector<std::size_t>& Launch::order(std::size_t count, std::vector<std::size_t>& at) {
  at.resize(count);
  std::iota(at.begin(), at.end(), std::size_t{0});
  if (options.schedule == Schedule::reversed) std::reverse(at.begin(), at.end());
  if (options.schedule == Schedule::random) std::shuffle(at.begin(), at.end(), random_);
  return at;
}

/// Fibers, and memory, of the blocks of a cluster.
void Launch::begin_cluster(dim3 first, unsigned cluster, std::size_t threads, std::size_t shared_bytes) {
  cluster_threads_ = cluster * threads;
  threads_ = (threads + 127) / 128 * 128;
  fibers_.assign(cluster * threads_, Fiber{});
  warps_.assign(fibers_.size() / 32, Warp{});
  copies_.clear();
  boxes_.clear();
  arrivals_.clear();
  unfenced_.clear();
  multiplications_ = std::vector<Multiplications>(warps_.size());
  multiplied_.assign(fibers_.size() / 128, {});
  at_cluster_barrier_ = 0;
  blocks_ = std::vector<Block>(cluster);  // of new memory, of which ThreadSanitizer knows nothing yet
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
}

void Launch::one_cluster(dim3 first, unsigned cluster, std::size_t threads, std::size_t shared_bytes) {
  begin_cluster(first, cluster, threads, shared_bytes);
  std::size_t live = cluster * threads;
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
          if (!fault_.empty()) return;
          if (f.state == State::done) {
            --live;
            --b.live;
            const bool spoken_to = std::any_of(arrivals_.begin(), arrivals_.end(),
                                               [&](const Arrival& arrival) { return arrival.block == block_of(f); });
            if (b.live == 0 && spoken_to) {
              fault_ = sentence(f, "a block ends while an arrival at one of its gates is on its way");
              return;
            }
          }
          if (b.at_barrier > 0 && b.at_barrier == b.live) release(b);
          if (at_cluster_barrier_ > 0 && at_cluster_barrier_ == live) release_cluster();
          ran = again = true;
        }
        if (options.schedule == Schedule::random && random_() % 4 == 0) again = false;
      }
    if (ran || live == 0) continue;
    if (!boxes_.empty() || !arrivals_.empty()) {
      bring_one();
      continue;
    }
    for (Fiber& f : fibers_)
      if (f.state == State::waiting) {
        fault_ = name_ + ": nobody can go on; block " + text(f.block) + ", thread " + std::to_string(f.thread) +
                 " waits at " + text(f.place) + " for " + f.whom + ", " + schedule();
        return;
      }
  }
  if (!boxes_.empty()) fault_ = name_ + ": a block ends before all boxes are there, " + schedule();
}

/// The barrier opens.
void Launch::release(Block& b) {
  b.at_barrier = 0;
  ++b.phases.now;
  for (Fiber& f : fibers_) {
    if (!f.at_barrier || &blocks_[block_of(f)] != &b) continue;
    f.at_barrier = false;
    f.state = State::ready;
  }
}

void Launch::release_cluster() {
  at_cluster_barrier_ = 0;
  while (cluster_barrier_releases_ && !arrivals_.empty()) arrive_late(0);
  ++blocks_.front().cluster_phases.now;
  for (Fiber& f : fibers_) {
    if (!f.at_cluster_barrier) continue;
    f.at_cluster_barrier = false;
    f.state = State::ready;
  }
}

void Launch::step(Fiber& f) {
  if (f.stack < 0) begin(f);
  running_ = &f;
  tessera_switch_stacks(&main_, f.stack_pointer);
  running_ = nullptr;
  if (f.state == State::done) give_back(f.stack);
  if (const std::string race = races::found(); !race.empty() && fault_.empty()) fault_ = sentence(f, race);
}

void Launch::begin(Fiber& f) {
  f.stack = take();
  f.identity = identity(f.stack);
  const auto top = reinterpret_cast<std::uintptr_t>(stacks_[static_cast<std::size_t>(f.stack)].get()) + stack_bytes;
  void** at = reinterpret_cast<void**>(top & ~std::uintptr_t{15});
  *--at = nullptr;  // the return address of `entry`, which never returns
  *--at = reinterpret_cast<void*>(&entry);
  f.stack_pointer = std::fill_n(at - 6, 6, nullptr) - 6;  // six registers, of which a frame pointer ends the calls
}

/// A stack, with the identity whose it always is. Where races are looked for, one that has not been used for long: two
/// blocks that share an identity do not race. (Each more makes synchronisation slower.)
int Launch::take() {
  if (free_.empty() || (races::looked_for && stacks_.size() < std::max(told_apart, 2 * cluster_threads_))) {
    free_.push_front(static_cast<int>(stacks_.size()));
    stacks_.push_back(std::make_unique<unsigned char[]>(stack_bytes));
    identities_.push_back(races::make());
  }
  const int taken = free_.front();
  free_.pop_front();
  const races::As its(identity(taken));
  races::learn(&begun_);
  return taken;
}

void Launch::give_back(int& taken) {
  if (taken < 0) return;
  races::looked_for ? free_.push_back(taken) : free_.push_front(taken);
  const races::As its(identity(taken));
  races::tell(&ended_);
  taken = -1;
}

void Launch::give_back_all() {
  for (Fiber& f : fibers_) give_back(f.stack);
  for (Multiplications& m : multiplications_) give_back(m.reader), give_back(m.waited_for);
}

void Launch::wait(const Place& place, const char* whom) {
  running_->place = place;
  running_->whom = whom;
  running_->state = State::waiting;
  to_main();
}

void Launch::to_main() {
  const races::As machine(machine_);
  tessera_switch_stacks(&running_->stack_pointer, main_);
}

void Launch::entry() {
  {
    const races::As its(the_launch.running_->identity);
    (*the_launch.kernel_)();
  }
  the_launch.all_copies_waited_for();
  the_launch.all_multiplications_waited_for();
  the_launch.running_->state = State::done;
  for (;;) the_launch.to_main();
}

namespace {

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
  races::handle(SIGSEGV, action);
}

}  // namespace

void use(const Options& options) { the_launch.options = options; }
float with_products(float sum, const float (&products)[16]) {
  const Options& options = the_launch.options;
  const int as_the_gpu = options.warpgroups ? 16 : 8;
  const int at_once = options.products_at_once < 0 ? as_the_gpu : options.products_at_once;
  if (at_once == 0) {
    for (const float product : products) sum += product;
    return sum;
  }
  constexpr int places = 24;  // of a sum
  const auto exponent = [](float x) { return std::max(std::bit_cast<std::uint32_t>(x) >> 23 & 0xff, 1u); };
  const auto power_of_two = [](int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52); };
  for (int first = 0; first < 16; first += at_once) {
    std::uint32_t largest = exponent(sum);
    for (int i = first; i < first + at_once; ++i) largest = std::max(largest, exponent(products[i]));
    if (largest == 255) {  // infinite, or not a number
      for (int i = first; i < first + at_once; ++i) sum += products[i];
      continue;
    }
    const int last_place = static_cast<int>(largest) - 127 - (places - 1);
    const double scale = power_of_two(-last_place);
    auto all = static_cast<std::int64_t>(sum * scale);  // truncated, as all that follow
    for (int i = first; i < first + at_once; ++i) all += static_cast<std::int64_t>(products[i] * scale);
    const int beyond =
        std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::abs(all)))) - places);
    const std::int64_t kept = all / (std::int64_t{1} << beyond) * (std::int64_t{1} << beyond);
    sum = static_cast<float>(static_cast<double>(kept) * power_of_two(last_place));
  }
  return sum;
}
std::size_t most_shared_bytes() {
  const Options& options = the_launch.options;
  return std::size_t{1024} * (options.shared_kilobytes ? options.shared_kilobytes : options.warpgroups ? 227 : 163);
}
std::int64_t bank_conflicts() { return the_launch.conflicts; }

void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
         unsigned cluster) {
  static const bool caught = (catch_bad_addresses(), true);
  (void)caught;
  the_launch.run(name, grid, block, shared_bytes, kernel, cluster);
}

const Thread& current() { return *the_launch.running(); }
const dim3& block_size() { return the_launch.block(); }
const dim3& grid_size() { return the_launch.grid(); }
unsigned char* shared_bytes() { return the_launch.shared(); }
void barrier(const Place& place) { the_launch.barrier(place); }
void warp(const Place& place, void* mine, void (*together)(void* const lanes[32]), bool aligned) {
  the_launch.warp(place, mine, together, aligned);
}
void check_aligned(const void* place, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(place) % bytes)
    the_launch.fail("a place is not aligned to " + std::to_string(bytes) + " bytes");
}
void copy_async(void* to, const void* from, int valid) {
  the_launch.copy_async(
      {static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), valid, __builtin_return_address(0)});
}
void copy_commit() { the_launch.copy_commit(); }
void copy_wait(int left) { the_launch.copy_wait(left); }
void reads(const void* first, std::size_t bytes) { races::reads(first, bytes, __builtin_return_address(0)); }
void read_at_once(const void* const rows[8]) { the_launch.read_at_once(rows); }

}  // namespace tessera::cuda_host
