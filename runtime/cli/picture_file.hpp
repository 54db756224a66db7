// The pictures of a file that the command line names.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/image.hpp"
#include "runtime/model.hpp"
#include "runtime/preprocess.hpp"

namespace tessera::runtime {

/// Pictures of one size.
struct Pictures {
  std::int64_t channels, height, width;
  Bytes pixels;

  std::int64_t image_size() const { return channels * height * width; }
  std::int64_t size() const { return static_cast<std::int64_t>(pixels.size()) / image_size(); }
  Image at(std::int64_t index) const {
    const auto first = pixels.begin() + index * image_size();
    return {channels, height, width, Bytes(first, first + image_size())};
  }
};

/// The pictures of a file: one, or those of an IDX file.
Pictures read_images(const Model& model, const std::filesystem::path& path);

/// The image as the model sees it, before it is normalised.
Image prepared(const Model& model, const Preprocessing& preprocessing, const Image& image, bool inverted);

}  // namespace tessera::runtime
