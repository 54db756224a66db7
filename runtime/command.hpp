// A command of a program beside those that every program has, from a library that the program links for it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/gpu.hpp"
#include "runtime/model.hpp"

namespace CLI {
class App;
}

namespace tessera::runtime {

/// What the command line says in the options that such a command has in any case.
struct CommandInput {
  const Model& model;
  const Recipe& recipe;
  std::filesystem::path parameters;  ///< the file: --checkpoint, or that of --out
  std::filesystem::path labels;      ///< --labels; empty: those of the parameters' file
  const Gpu* gpu = nullptr;          ///< --device cuda; null: the CPU
};

struct Command {
  std::string name, description;
  std::vector<std::string> examples;            ///< the arguments of each
  std::function<void(CLI::App&)> add_options;   ///< those of its own
  std::function<int(const CommandInput&)> run;  ///< returns the exit code
};

}  // namespace tessera::runtime
