#include "tests/cuda/host/run.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
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
  State state = State::ready;
  void* stack_pointer = nullptr;
  int stack = -1;  ///< which of the pool's; -1: not begun
  Place place;     ///< where it waits
  bool at_barrier = false;
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
  void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
    name_ = name;
    kernel_ = &kernel;
    block_ = block;
    fault_.clear();
    random_.seed(options.seed);
    const std::size_t threads = std::size_t{block.x} * block.y * block.z;
    constexpr std::size_t most_shared = 163 * 1024;  // of sm_80
    if (shared_bytes > most_shared || threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
        grid.y > 65535 || grid.z > 65535)
      throw Fault(name_ + ": a grid of " + text(grid) + " blocks of " + text(block) + " threads cannot be launched");
    const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
    for (std::size_t at : order(blocks, block_order_)) {
      const unsigned x = static_cast<unsigned>(at % grid.x), rest = static_cast<unsigned>(at / grid.x);
      one_block({x, rest % grid.y, rest / grid.y}, threads, shared_bytes);
      if (fault_.empty()) continue;
      running_ = nullptr;
      throw Fault(fault_);
    }
  }

  void barrier(const Place& place) {
    if (at_barrier_ > 0 && !same(barrier_, place))
      fail("threads of one block wait at different barriers, " + text(barrier_) + " and " + text(place));
    barrier_ = place;
    ++at_barrier_;
    wait(place, true);
  }

  void warp(const Place& place, void* mine, void (*together)(void* const lanes[32])) {
    Warp& w = warps_[static_cast<std::size_t>(running_->thread / 32)];
    if (w.arrived && !same(w.place, place))
      fail("lanes of one warp are at different operations, " + text(w.place) + " and " + text(place));
    w.place = place;
    w.lanes[running_->thread % 32] = mine;
    if (++w.arrived < 32) return wait(place, false);
    together(w.lanes);
    w.arrived = 0;
    const std::size_t first = static_cast<std::size_t>(running_->thread / 32 * 32);
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
    copies_[running_->thread].open.push_back(copy);
  }
  void copy_commit() {
    Copies& mine = copies_[running_->thread];
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
  }
  void copy_wait(int left) {
    Copies& mine = copies_[running_->thread];
    for (; mine.groups.size() > static_cast<std::size_t>(left); mine.groups.pop_front())
      for (const Copy& copy : mine.groups.front()) do_copy(copy);
  }

  /// At a thread's end: a copy still under way may come later than what the kernel does next with its place.
  void all_copies_waited_for() {
    const auto at = copies_.find(running_->thread);
    if (at == copies_.end()) return;
    bool under_way = !at->second.open.empty();
    for (const std::vector<Copy>& group : at->second.groups) under_way = under_way || !group.empty();
    if (under_way) fail("an asynchronous copy is not waited for");
  }

  [[noreturn]] void fail(const std::string& what) {
    fault_ = name_ + ": " + what + "; block " + text(running_->block) + ", thread " + std::to_string(running_->thread) +
             ", " + schedule();
    for (;;) to_main();
  }

  Fiber* running() { return running_; }
  const dim3& block() const { return block_; }
  unsigned char* shared() { return shared_.data() + shared_from_; }

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

  void one_block(dim3 index, std::size_t threads, std::size_t shared_bytes) {
    shared_.assign(shared_bytes + 128, 0xff);  // not-a-number, in single precision as in bf16
    shared_from_ = 127 - (reinterpret_cast<std::uintptr_t>(shared_.data()) + 127) % 128;
    shared_.resize(shared_from_ + shared_bytes);
    fibers_.assign(threads, Fiber{});
    warps_.assign((threads + 31) / 32, Warp{});
    copies_.clear();
    at_barrier_ = 0;
    std::size_t live = threads;
    for (std::size_t i = 0; i < threads; ++i) {
      fibers_[i].thread = static_cast<int>(i);
      fibers_[i].block = index;
    }
    // A warp goes on as far as it can before the next one begins: what needs a barrier and has none shows. In random
    // order it is sometimes held up.
    while (live > 0) {
      bool ran = false;
      for (std::size_t w : order(warps_.size(), warp_order_))
        for (bool again = true; again;) {
          again = false;
          for (std::size_t lane : order(std::min<std::size_t>(32, threads - 32 * w), lane_order_)) {
            Fiber& f = fibers_[32 * w + lane];
            if (f.state != State::ready) continue;
            step(f);
            if (!fault_.empty()) return give_back_all();
            if (f.state == State::done) --live;
            if (at_barrier_ > 0 && at_barrier_ == live) release();
            ran = again = true;
          }
          if (options.schedule == Schedule::random && random_() % 4 == 0) again = false;
        }
      if (ran || live == 0) continue;
      for (Fiber& f : fibers_)
        if (f.state == State::waiting) {
          fault_ = name_ + ": nobody can go on; block " + text(f.block) + ", thread " + std::to_string(f.thread) +
                   " waits at " + text(f.place) + (f.at_barrier ? " for the block, " : " for its warp, ") + schedule();
          return give_back_all();
        }
    }
  }

  /// The barrier opens.
  void release() {
    at_barrier_ = 0;
    for (Fiber& f : fibers_) {
      if (!f.at_barrier) continue;
      f.at_barrier = false;
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

  void wait(const Place& place, bool for_block) {
    running_->place = place;
    running_->at_barrier = for_block;
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
  std::map<int, Copies> copies_;  ///< by thread
  std::size_t at_barrier_ = 0;
  Place barrier_;  ///< at which they wait
  std::vector<unsigned char> shared_;
  std::size_t shared_from_ = 0;
  std::vector<std::unique_ptr<unsigned char[]>> stacks_;
  std::vector<int> free_stacks_;
  Fiber* running_ = nullptr;
  void* main_ = nullptr;
};

Launch the_launch;

void Launch::entry() {
  (*the_launch.kernel_)();
  the_launch.all_copies_waited_for();
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

void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  static const bool caught = (catch_bad_addresses(), true);
  (void)caught;
  the_launch.run(name, grid, block, shared_bytes, kernel);
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

}  // namespace tessera::cuda_host
