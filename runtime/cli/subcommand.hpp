// A command of every program: its options, which it adds to the command line, and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/command.hpp"
#include "runtime/gpu.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// What the commands of a command line have in common: the model, and the options that mean the same in each.
struct CommandContext {
  const Model& model;
  const Recipe& recipe;  ///< as declared
  bool trains;           ///< the program has a training loop
  ParameterFile parameters{};
  std::string device = "cpu";
  double rank_timeout = 600;  ///< seconds
};

/// The options of a command live as long as what runs it.
struct Subcommand {
  CLI::App* app;                       ///< of the command line that it was added to
  std::function<int(const Gpu*)> run;  ///< on the GPU or, where it is null, the CPU; returns the exit code
  bool of_ranks = false;               ///< several ranks can run it together
  std::function<void()> check{};       ///< throws an Error where its options refuse it, before a GPU is asked for
};

/// --data, --digits and --limit.
void add_data_options(CLI::App* command, std::optional<std::filesystem::path>& data,
                      std::optional<std::int64_t>& digits, std::optional<std::int64_t>& limit);
CLI::Option* add_skip_option(CLI::App* command, std::vector<std::string>& skip);
/// --rank-timeout, where the program can run as several ranks.
void add_timeout_option(CLI::App* command, CommandContext& context);

/// Throws an Error where the model gives features or depths: its outputs are no classes, which eval and predict tell.
void demand_classes(const Model& model);

}  // namespace tessera::runtime
