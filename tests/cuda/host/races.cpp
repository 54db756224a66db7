// This file and those beside it are compiled without -fsanitize=thread, the kernels with it.
#include "tests/cuda/host/races.hpp"

#include <sanitizer/common_interface_defs.h>
#include <sanitizer/tsan_interface.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

// Of the run time, but in none of its headers.
extern "C" {
void __tsan_ignore_thread_begin();
void __tsan_ignore_thread_end();
void __tsan_read_range_pc(const void* first, std::size_t bytes, const void* place);
void __tsan_write_range_pc(const void* first, std::size_t bytes, const void* place);
int __tsan_get_report_data(void* report, const char** description, int* count, int* stacks, int* accesses,
                           int* locations, int* mutexes, int* threads, int* unique_threads, void** trace,
                           unsigned long trace_size);
int __tsan_get_report_mop(void* report, unsigned long which, int* thread, void** address, int* bytes, int* writes,
                          int* atomic, void** trace, unsigned long trace_size);
}

namespace tessera::cuda_host::races {

namespace {

struct Access {
  void *at = nullptr, *place = nullptr;
  int bytes = 0, writes = 0;
};
/// What is left here by __tsan_on_report, which is called where ThreadSanitizer holds locks.
struct {
  bool is_there = false;
  const char* kind;
  Access accesses[2];
} race;

bool launched = false;

std::string text(const Access& access) {
  std::string place = "a place that is forgotten";
  if (access.place) {
    // Of functions within each other, the first one that is no wrapper.
    char places[4096] = "";
    __sanitizer_symbolize_pc(access.place, "%s:%l", places, sizeof places - 1);
    const char* each = places;
    while (std::strstr(each, "/device.hpp:") && each[std::strlen(each) + 1] != 0) each += std::strlen(each) + 1;
    const char* const file = std::strrchr(each, '/');
    place = file ? file + 1 : each;
  }
  return std::string(access.writes ? "a write" : "a read") + " of " + std::to_string(access.bytes) + " bytes at " +
         place;
}

}  // namespace

// Its own wrapper around handlers has to be come back to.
extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* before);
void handle(int signal, const struct sigaction& action) { __sigaction(signal, &action, nullptr); }

Identity make() { return __tsan_create_fiber(0); }
Identity running() { return __tsan_get_current_fiber(); }
void become(Identity who) { __tsan_switch_to_fiber(who, __tsan_switch_to_fiber_no_sync); }
void tell(const void* what) { __tsan_release(const_cast<void*>(what)); }
void learn(const void* what) { __tsan_acquire(const_cast<void*>(what)); }
void reads(const void* first, std::size_t bytes, const void* place) {
  if (bytes > 0) __tsan_read_range_pc(first, bytes, place);
}
void writes(const void* first, std::size_t bytes, const void* place) { __tsan_write_range_pc(first, bytes, place); }
void look_away(bool away) {
  launched = away;
  away ? __tsan_ignore_thread_begin() : __tsan_ignore_thread_end();
}
std::string found() {
  if (!race.is_there) return "";
  race.is_there = false;
  if (std::strcmp(race.kind, "data-race") != 0) return std::string("ThreadSanitizer finds: ") + race.kind;
  return text(race.accesses[0]) + " races with " + text(race.accesses[1]) + " by another thread";
}

}  // namespace tessera::cuda_host::races

// What ThreadSanitizer calls.
extern "C" {

/// Each race is one, even where the lines are those of another. A Fault is thrown for it, which says more than an exit
/// code; bad addresses are told in a signal handler, which nothing comes back to. There are many threads, and all of
/// them do little: they need not remember much.
const char* __tsan_default_options() {
  return "suppress_equal_stacks=0:suppress_equal_addresses=0:exitcode=0:report_signal_unsafe=0:history_size=0:"
         "atexit_sleep_ms=0";
}

/// For every race, when its report has been printed.
void __tsan_on_report(void* report) {
  using namespace tessera::cuda_host::races;
  if (!launched) {
    std::fputs("a race, and no kernel is running\n", stderr);
    std::abort();
  }
  if (race.is_there) return;
  race = {};
  race.is_there = true;
  int count, stacks, accesses, locations, mutexes, threads, unique_threads;
  void* trace;
  __tsan_get_report_data(report, &race.kind, &count, &stacks, &accesses, &locations, &mutexes, &threads,
                         &unique_threads, &trace, 1);
  for (int i = 0; i < accesses && i < 2; ++i) {
    int thread, atomic;
    Access& access = race.accesses[i];
    __tsan_get_report_mop(report, static_cast<unsigned long>(i), &thread, &access.at, &access.bytes, &access.writes,
                          &atomic, &access.place, 1);
  }
}
}
