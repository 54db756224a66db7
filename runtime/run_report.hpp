// What a finished training run leaves in its folder to be read: report.txt and report.html.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/checkpoint.hpp"
#include "runtime/dataset.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

struct FinishedRun {
  const TrainingState& state;
  const Dataset &training_images, &test_images;
  const Evaluation& evaluation;  ///< on the test images
  std::string kernels;           ///< what computed: an instruction set, or a GPU
  std::string ranks;             ///< how many there were, and what they sent; empty: one alone
  std::int64_t batches_per_epoch;
  double images_per_second, seconds;
};

/// `result` is one line that says how good the model is.
void write_report(const std::filesystem::path& folder, const Model& model, const FinishedRun& finished,
                  const std::string& result);

}  // namespace tessera::runtime
