// A checkpoint's keys and shapes, and what its architecture's name tells -> the declaration that a person would write.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/safetensors.hpp"

namespace tessera::declare {

/// Names and shapes of a checkpoint's tensors.
struct Checkpoint {
  std::map<std::string, runtime::Shape> shapes;
  std::string where;  ///< what errors call it
};

/// Reads a safetensors file whose tensors are all real and finite. Throws a runtime::Error for any other, and for
/// PyTorch's pickles one that says how to convert them.
Checkpoint read_checkpoint(const std::filesystem::path& path);

/// What a config.json of timm says; what it leaves out is empty.
struct Config {
  std::string architecture, where = "the configuration";
  std::optional<std::int64_t> classes, heads;
  std::optional<std::string> pool;  ///< timm's global_pool
  std::optional<std::array<std::int64_t, 2>> image;  ///< height, width
  std::optional<std::array<double, 3>> mean, deviation;
  std::optional<double> crop;
  std::string interpolation, crop_mode;
};

/// Throws a runtime::Error that names the file, and the field that is not of its type.
Config read_config(const std::filesystem::path& path);
Config parse_config(std::string_view content, const std::string& where);

/// What an architecture's name tells, by the words of facts.txt; nothing for a name that timm does not have.
std::optional<std::map<std::string, std::string>> facts(std::string_view architecture);

struct Declaration {
  std::string header;                    ///< the text of a C++ header
  std::vector<std::string> assumptions;  ///< a sentence each
};

/// The model gets the name. Throws a runtime::Error that names the keys where VitSpec and the blocks of models/ cannot
/// say the checkpoint, where shapes contradict each other or the configuration, and where a key is missing or too much.
Declaration declare(const Checkpoint& checkpoint, const Config& config, const std::string& name);

}  // namespace tessera::declare
