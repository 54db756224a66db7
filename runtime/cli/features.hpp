// The commands for the features of a model: embed, similar, probe, components.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "runtime/cli/subcommand.hpp"
#include "runtime/inference.hpp"
#include "runtime/probe.hpp"

namespace tessera::runtime {

/// None that the model's outputs do not allow; for a model that can embed.
std::vector<Subcommand> add_features(CLI::App& app, CommandContext& context);

/// The head that predict uses in the place of the model's own, with which the classes come; nothing where the path is
/// empty. Throws an Error where it was fitted to other features.
std::optional<LinearHead> head_of(const std::filesystem::path& path, const Model& model, const float* parameters,
                                  Usage& usage);
/// What it says of one image, as the model reads it.
std::vector<float> probabilities(const LinearHead& head, const Inference& inference, const float* image);

}  // namespace tessera::runtime
