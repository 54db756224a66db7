// Labelled images in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/file.hpp"

namespace tessera::runtime {

enum class Split { train, test };

/// "training" or "test"
const char* name(Split split);

/// Images as bytes [count, channels, height, width] and one label in [0, classes) each.
struct Dataset {
  std::string source;  ///< where they come from, for people: "built-in digits"
  std::int64_t channels = 0, height = 0, width = 0, classes = 0;
  std::vector<std::string> names;  ///< of the classes; none: they have only their numbers
  Bytes pixels;
  std::vector<std::int32_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_size() const { return channels * height * width; }
  std::span<const std::uint8_t> image(std::int64_t index) const {
    return std::span(pixels).subspan(static_cast<std::size_t>(index * image_size()),
                                     static_cast<std::size_t>(image_size()));
  }
  /// The name of a class, or its number where it has none.
  std::string called(std::int64_t label) const;
  /// Keeps the first `count` images; more than there are is no error.
  void keep(std::int64_t count);
  /// CRC-32 (RFC 1952) of pixels and labels: whether a resumed run sees the images it started with.
  std::uint32_t fingerprint() const;
};

}  // namespace tessera::runtime
