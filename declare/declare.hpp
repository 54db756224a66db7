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
#include "runtime/translation.hpp"

namespace tessera::declare {

/// Names and shapes of a checkpoint's tensors.
struct Checkpoint {
  std::map<std::string, runtime::Shape> shapes;  ///< by timm's keys
  std::string where;                             ///< what errors call it
  runtime::Keys keys = {};                       ///< whose they are in the file
  std::vector<std::string> left_out = {};        ///< keys that no image needs

  std::string library() const { return std::string(keys.dialect->library); }
  bool has(const std::string& key) const { return shapes.contains(key); }
  /// Whether there is a key that begins so.
  bool has_any(const std::string& prefix) const {
    const auto first = shapes.lower_bound(prefix);
    return first != shapes.end() && first->first.starts_with(prefix);
  }
  /// The file's own name of timm's key.
  std::string named(const std::string& key) const { return runtime::printable(keys.theirs(key)); }
};

/// Reads a safetensors file whose tensors are all real and finite, in any of runtime::dialects(). Throws a
/// runtime::Error for any other, and for PyTorch's pickles one that says how to convert them.
Checkpoint read_checkpoint(const std::filesystem::path& path);
Checkpoint checkpoint_of(runtime::Safetensors file);

/// What a configuration says: timm's or Hugging Face's config.json, OpenCLIP's open_clip_config.json, or arguments of a
/// constructor by their names (num_heads, image_size). What it leaves out is empty.
struct Config {
  std::string architecture, where = "the configuration";
  std::string library;                       ///< whose it is, where it is not timm's
  std::map<std::string, std::string> facts;  ///< by the words of facts.txt, where it is another library's
  std::optional<std::int64_t> classes, heads;
  std::optional<std::string> pool;                   ///< timm's global_pool
  std::optional<std::array<std::int64_t, 2>> image;  ///< height, width
  /// Of a Swin Transformer V2's attention, and those that it measures distances by: one for all stages, or one for
  /// each; empty: not said.
  std::vector<std::array<std::int64_t, 2>> windows, pretrained_windows;
  std::vector<std::int64_t> layers;  ///< of an encoder, that something reads, counted from 0; empty: not said
  std::optional<double> farthest;    ///< metres that a model of depth tells at most; none: it does not tell metres
  std::optional<std::array<double, 3>> mean, deviation;
  std::optional<double> crop;
  std::string interpolation, crop_mode;
};

/// Throws a runtime::Error that names the file, and the field that is not of its type. Of Hugging Face's,
/// preprocessor_config.json beside it is read too.
Config read_config(const std::filesystem::path& path);
Config parse_config(std::string_view content, const std::string& where);
/// Adds what a preprocessor_config.json of Hugging Face says.
void add_preprocessor(Config& config, std::string_view content, const std::string& where);

struct Declaration {
  std::string header;                    ///< the text of a C++ header
  std::vector<std::string> assumptions;  ///< a sentence each
};

/// The model gets the name. Throws a runtime::Error that names the keys where VitSpec and the blocks of models/ cannot
/// say the checkpoint, where shapes contradict each other or the configuration, and where a key is missing or too much.
Declaration declare(const Checkpoint& checkpoint, const Config& config, const std::string& name);

}  // namespace tessera::declare
