// What a person sees while work is under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/live_view.hpp"

namespace tessera::runtime {

/// On a terminal a few lines that are rewritten in place (live_view); plain lines every few seconds elsewhere.
class Progress {
 public:
  /// `left` images are still to be trained on in all epochs; `terminal`: whether standard output is one.
  Progress(std::int64_t left, bool terminal);

  /// After a step on `images` images. Writes only when it is time to.
  void step(std::int64_t images, const Now& now);
  /// A line that stays.
  void line(const std::string& text);
  /// What is shown stays, below it what comes: the run is over.
  void leave(const Now& now);
  /// The next step begins now: what came before (reading images, evaluating) does not count as training time.
  void resume();

  double seconds() const { return training_; }  ///< spent on training steps so far
  double rate() const { return training_ > 0 ? static_cast<double>(trained_) / training_ : 0; }  ///< images a second

 private:
  using Clock = std::chrono::steady_clock;
  static double between(Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double>(b - a).count();
  }
  double seconds_left() const { return rate() > 0 ? static_cast<double>(left_) / rate() : 0; }
  void clear();
  void show(const Now& now);

  bool terminal_;
  std::int64_t left_, trained_ = 0;
  double training_ = 0;
  Clock::time_point last_step_, last_shown_;
  std::size_t open_ = 0;  ///< the cursor stands at the end of so many lines that are to be rewritten
};

/// Counts what is done of a job beside training, on standard error: results may go to standard output. One line that is
/// rewritten on a terminal and goes away at the end; plain lines every few seconds elsewhere.
class Counter {
 public:
  /// `what` is being done, so many times in all.
  Counter(std::string what, std::int64_t all);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void add(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  std::int64_t all_, done_ = 0;
  bool terminal_, open_ = false;
  Clock::time_point begin_, last_shown_;
};

}  // namespace tessera::runtime
