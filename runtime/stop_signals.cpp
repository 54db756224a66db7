#include "runtime/stop_signals.hpp"

namespace tessera::runtime {
namespace {

volatile std::sig_atomic_t stop_raised = 0;

void raise_stop(int) { stop_raised = 1; }

}  // namespace

StopSignals::StopSignals() {
  stop_raised = 0;
  struct sigaction action{};
  action.sa_handler = raise_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  ::sigaction(SIGINT, &action, &interrupt_);
  ::sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &interrupt_, nullptr);
  ::sigaction(SIGTERM, &terminate_, nullptr);
}

bool StopSignals::raised() { return stop_raised != 0; }

}  // namespace tessera::runtime
