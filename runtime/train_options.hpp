// What the command line asks of a training run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/gpu.hpp"

namespace tessera::runtime {

/// What the command line asks of a training run. What it leaves out comes from the declared recipe or, for a resumed
/// run, from the checkpoint.
struct TrainOptions {
  std::optional<std::filesystem::path> data;
  std::optional<std::int64_t> digits, limit, epochs, batch, accumulate;
  std::optional<std::uint64_t> seed;
  std::optional<double> learning_rate;
  std::filesystem::path out;
  bool resume = false;
  bool isa_change = false;            ///< a run may be resumed with another instruction set, which gives other bits
  std::filesystem::path init;         ///< parameters to start from, as start_from takes them; empty: the declared ones
  std::vector<std::string> skip;      ///< keys that `init` does not set
  std::int64_t checkpoint_every = 0;  ///< steps; 0: every 20 seconds
  std::string command;                ///< how the program was called, for advice
  bool overlap = false;               ///< ranks exchange gradients while the rest of them is computed
  const Gpu* gpu = nullptr;           ///< to train on, which must outlive the session; null: the CPU
  const Communicator* ranks = &Communicator::single();  ///< that partition the parts of a step; outlives it too
};

}  // namespace tessera::runtime
