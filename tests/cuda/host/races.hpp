// What ThreadSanitizer is told of a launch: that every CUDA thread is a thread of its own, which stack switches never
// synchronise, and what does. With TESSERA_FIND_RACES; else all of this is nothing.
//
// Barriers order what threads read and write; shuffles and operations of a warp do not, nor do blocks of one grid. The
// machine itself, whose bookkeeping all threads run, is one more thread, and nothing of it is looked at.
#pragma once

#include <signal.h>

#include <cstddef>
#include <string>

namespace tessera::cuda_host::races {

/// To ThreadSanitizer, a thread.
using Identity = void*;

#if defined(TESSERA_FIND_RACES)

constexpr bool looked_for = true;
Identity make();
Identity running();
/// From here on, who reads, writes, tells and learns.
void become(Identity who);
/// Whoever learns of `what` after this has everything behind it that the running identity did before.
void tell(const void* what);
void learn(const void* what);
/// By what is called from `place`, a return address.
void reads(const void* first, std::size_t bytes, const void* place);
void writes(const void* first, std::size_t bytes, const void* place);
/// Nothing that the running identity does is looked at, until it is again.
void look_away(bool away);
/// The first race since the last call: "" or part of a sentence.
std::string found();
/// For this signal, also where nothing comes back from it.
void handle(int signal, const struct sigaction& action);

#else

constexpr bool looked_for = false;
inline Identity make() { return nullptr; }
inline Identity running() { return nullptr; }
inline void become(Identity) {}
inline void tell(const void*) {}
inline void learn(const void*) {}
inline void reads(const void*, std::size_t, const void*) {}
inline void writes(const void*, std::size_t, const void*) {}
inline void look_away(bool) {}
inline std::string found() { return ""; }
inline void handle(int signal, const struct sigaction& action) { sigaction(signal, &action, nullptr); }

#endif

/// Until its end, what happens is another identity's.
class As {
 public:
  explicit As(Identity who) : before_(running()) { become(who); }
  ~As() { become(before_); }
  As(const As&) = delete;
  As& operator=(const As&) = delete;

 private:
  Identity before_;
};

}  // namespace tessera::cuda_host::races
