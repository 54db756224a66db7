#include "runtime/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {
namespace {

constexpr double terminal_interval = 0.1, plain_interval = 5;

}  // namespace

Progress::Progress(std::int64_t left, bool terminal)
    : terminal_(terminal), left_(left), last_step_(Clock::now()), last_shown_(last_step_) {}

void Progress::clear() {
  if (open_ > 1) std::cout << "\033[" << open_ - 1 << 'A';
  if (open_ > 0) std::cout << "\r\033[J";
  open_ = 0;
}

void Progress::show(const Now& now) {
  clear();
  const std::vector<std::string> lines = live_view(now, rate(), seconds_left(), this_screen());
  for (const std::string& shown : lines) std::cout << (open_++ ? "\n" : "") << shown;
  std::cout << std::flush;
}

void Progress::step(std::int64_t images, const Now& now) {
  const Clock::time_point time = Clock::now();
  training_ += between(last_step_, time);
  last_step_ = time;
  trained_ += images;
  left_ -= images;
  if (between(last_shown_, time) < (terminal_ ? terminal_interval : plain_interval)) return;
  last_shown_ = time;
  if (terminal_) {
    show(now);
    return;
  }
  const std::int64_t percent = now.images ? 100 * now.seen / now.images : 100;
  std::cout << text("epoch ", now.epoch, "/", now.epochs, "  ", padded(text(percent, "%"), 4), "  step ", now.step,
                    "  loss ", fixed(now.loss, 4), "  ", accuracy_text(now), grouped(static_cast<std::int64_t>(rate())),
                    " images/s  ", duration(seconds_left()), " left")
            << std::endl;
}

void Progress::line(const std::string& text) {
  clear();
  std::cout << text << std::endl;
}

void Progress::leave(const Now& now) {
  if (!terminal_) return;
  show(now);
  std::cout << std::endl;
  open_ = 0;
}

void Progress::resume() { last_step_ = Clock::now(); }

Counter::Counter(std::string what, std::int64_t all)
    : what_(std::move(what)),
      all_(all),
      terminal_(::isatty(STDERR_FILENO) != 0),
      begin_(Clock::now()),
      last_shown_(begin_) {}

Counter::~Counter() {
  if (open_) std::cerr << "\r\033[K" << std::flush;
}

void Counter::add(std::int64_t done) {
  done_ += done;
  const Clock::time_point time = Clock::now();
  if (std::chrono::duration<double>(time - last_shown_).count() < (terminal_ ? terminal_interval : plain_interval))
    return;
  last_shown_ = time;
  const double rate = static_cast<double>(done_) / std::chrono::duration<double>(time - begin_).count();
  const std::string said =
      text(what_, "  ", grouped(done_), " of ", grouped(all_), "  ", grouped(static_cast<std::int64_t>(rate)), "/s  ",
           duration(static_cast<double>(all_ - done_) / rate), " left");
  if (terminal_)
    std::cerr << '\r' << said << "\033[K" << std::flush;
  else
    std::cerr << said << std::endl;
  open_ = terminal_;
}

}  // namespace tessera::runtime
