// SIGINT and SIGTERM as a wish to stop a run.
#pragma once

#include <csignal>

namespace tessera::runtime {

/// Takes SIGINT and SIGTERM as a wish to stop after the running step, as long as it lives. A second signal ends the
/// program at once.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  static bool raised();

 private:
  struct sigaction interrupt_{}, terminate_{};
};

}  // namespace tessera::runtime
