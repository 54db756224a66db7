#include "runtime/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {
namespace {

constexpr double terminal_interval = 0.1, plain_interval = 5;

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::int64_t left, bool terminal)
    : terminal_(terminal), left_(left), last_step_(Clock::now()), last_shown_(last_step_) {}

std::string Progress::bar(const Now& now) const {
  const double left = rate() > 0 ? static_cast<double>(left_) / rate() : 0;
  const std::string numbers = text("loss ", fixed(now.loss, 4), "  accuracy ", fixed(100 * now.accuracy, 1), "%  ",
                                   grouped(static_cast<std::int64_t>(rate())), " images/s  ", duration(left), " left");
  const std::string where = text("epoch ", now.epoch, "/", now.epochs);
  if (!terminal_) {
    const std::int64_t percent = now.images ? 100 * now.seen / now.images : 100;
    return text(where, "  ", padded(text(percent, "%"), 4), "  step ", now.step, "  ", numbers);
  }
  const int room = terminal_columns() - 1,
            width = std::min(30, room - static_cast<int>(where.size() + numbers.size()) - 6);
  std::string drawn;
  if (width >= 5) {
    const auto full = static_cast<std::size_t>(now.images ? width * now.seen / now.images : width);
    drawn = text('[', std::string(full, '='), std::string(static_cast<std::size_t>(width) - full, ' '), "]  ");
  }
  return text(where, "  ", drawn, numbers).substr(0, static_cast<std::size_t>(std::max(room, 1)));
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
    std::cout << '\r' << bar(now) << "\033[K" << std::flush;
    open_ = true;
  } else {
    std::cout << bar(now) << std::endl;
  }
}

void Progress::line(const std::string& text) {
  if (open_) std::cout << "\r\033[K";
  open_ = false;
  std::cout << text << std::endl;
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
