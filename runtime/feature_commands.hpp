// The commands for the features of a model: embed, similar, probe, components.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/command.hpp"
#include "runtime/gpu.hpp"
#include "runtime/inference.hpp"
#include "runtime/probe.hpp"

namespace tessera::runtime {

class FeatureCommands {
 public:
  /// Adds the commands to the program's; none where the model has no features. All must outlive this.
  FeatureCommands(CLI::App& app, const Model& model, const Recipe& recipe, ParameterFile& parameters,
                  std::string& device);
  ~FeatureCommands();

  /// Runs the one that the command line names, on the GPU or, where it is null, on the CPU; nothing where it names
  /// another command.
  std::optional<int> run(const Gpu* gpu);

 private:
  struct Options;
  std::unique_ptr<Options> options_;
};

/// The head that predict uses in the place of the model's own, with which the classes come; nothing where the path is
/// empty. Throws an Error where it was fitted to other features.
std::optional<LinearHead> head_of(const std::filesystem::path& path, const Model& model, const float* parameters,
                                  Usage& usage);
/// What it says of one image, as the model reads it.
std::vector<float> probabilities(const LinearHead& head, const Inference& inference, const float* image);

}  // namespace tessera::runtime
