// How a transformer is trained on the tokens of a VQGAN: what `train` of its program does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "runtime/data_choice.hpp"
#include "runtime/taming_program.hpp"

namespace tessera::runtime {

inline constexpr std::int64_t most_steps = std::int64_t{1} << 32;

struct GptTraining {
  std::filesystem::path vqgan, out;
  DataChoice data;
  std::int64_t steps = 0, batch = 0;
  std::uint64_t seed = 1;
  double learning_rate = 0;
  double keep = 1;  ///< the chance that a token is read as it is; else a random code is read in its place
  bool resume = false;
  bool on_gpu = false;  ///< encodes and trains on it; pictures of the report are drawn on the CPU

  /// All that a run's bits follow from, but how long it is and its codebook.
  std::map<std::string, std::string> settings() const;
};

/// Encodes the data once and trains; leaves checkpoint.safetensors and report.html in the run's folder. Resumed, a run
/// ends in the same bytes. Returns the exit status.
int train_gpt(const Taming& taming, const GptTraining& options);

/// Writes parameters as a run that can be drawn from, but not resumed.
void save_gpt(const Taming& taming, const std::filesystem::path& path, const float* parameters,
              const std::filesystem::path& vqgan);

}  // namespace tessera::runtime
