// What several commands of a program's command line have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint.hpp"
#include "runtime/model.hpp"
#include "runtime/ranges.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// Where a command's parameters come from.
struct ParameterFile {
  std::filesystem::path out;         ///< the folder of a training run
  std::filesystem::path checkpoint;  ///< a file in its place; empty: none was named
  std::filesystem::path shipped;     ///< the file beside the program, until --out is given; empty: there is none

  bool of_run() const { return checkpoint.empty(); }  ///< in a folder of the program's own
  std::filesystem::path file() const {
    return !checkpoint.empty() ? checkpoint : !shipped.empty() ? shipped : out / "checkpoint.safetensors";
  }
};

/// NAME.safetensors in the program's own folder, as tessera_add_model(... CHECKPOINT) puts it there; empty where there
/// is none.
std::filesystem::path shipped_parameters(const Model& model);

/// Reads the parameters and answers how they are used: as the file says or, where it holds the parameters alone, as is
/// declared.
Usage load_for_use(const std::filesystem::path& path, const Model& model, const Recipe& declared, float* parameters);

void add_labels_option(CLI::App* command, std::filesystem::path& labels);
void add_device_option(CLI::App* command, std::string& device);
void add_checkpoint_options(CLI::App* command, ParameterFile& parameters);

/// "Examples:" and a line for each, which begins with the program's name.
std::string examples(const Model& model, const std::vector<std::string>& arguments);

/// What every command's help ends with, before its examples.
inline constexpr const char* threads_too = "For every command: --threads N, the threads to use.\n\n";
inline constexpr const char* swap_light =
    "Swap light and dark: for ink on paper, where the model was trained on light strokes";

}  // namespace tessera::runtime
