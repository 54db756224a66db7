// Labelled images, in memory or in a file that is mapped into it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/file.hpp"

namespace tessera::runtime {

enum class Split { train, test };

/// "training" or "test"
const char* name(Split split);

/// Gives room for so many bytes, in the place of memory.
using Room = std::function<std::shared_ptr<std::uint8_t>(std::int64_t bytes)>;

/// Images as bytes [count, channels, height, width] and one label in [0, classes) each.
struct Dataset {
  std::string source;  ///< where they come from, for people: "built-in digits"
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::string> names;  ///< of the classes; none: they have only their numbers
  Bytes pixels;
  std::vector<std::int32_t> labels;
  // In the place of `pixels`:
  std::shared_ptr<std::uint8_t> mapping;  ///< what holds them
  std::span<const std::uint8_t> mapped;
  std::optional<std::uint32_t> known_fingerprint;  ///< as the file says

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_size() const { return channels * height * width; }
  /// All pixels, wherever they lie.
  std::span<const std::uint8_t> bytes() const { return mapping ? mapped : std::span<const std::uint8_t>(pixels); }
  std::span<const std::uint8_t> image(std::int64_t index) const {
    return bytes().subspan(static_cast<std::size_t>(index * image_size()), static_cast<std::size_t>(image_size()));
  }
  /// The name of a class, or its number where it has none.
  std::string called(std::int64_t label) const;
  /// Keeps the first `count` images; more than there are is no error.
  void keep(std::int64_t count);
  /// CRC-32 (RFC 1952) of pixels and labels: whether a resumed run sees the images it started with.
  std::uint32_t fingerprint() const;
};

}  // namespace tessera::runtime
