// Pictures to features.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dataset.hpp"
#include "runtime/features.hpp"
#include "runtime/image.hpp"
#include "runtime/inference.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// So many pictures go through a model together.
inline constexpr std::int64_t embedded_at_once = 16;

/// Pictures by their numbers, none of which is read before it is asked for.
struct PictureList {
  std::vector<std::string> names;
  /// With as many channels as the model reads, of its own size still; by several threads at once. Throws an Error for a
  /// picture that cannot be read.
  std::function<Image(std::int64_t index)> read;
  bool prepared = false;  ///< as the model reads them, but for the normalisation: those of data sets of its size

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }
};

/// Those of files, and of folders all PNG, JPEG, BMP, PGM and PPM pictures in them and below, sorted by name. Throws an
/// Error for a folder without any.
PictureList pictures_of_files(const Model& model, const std::vector<std::filesystem::path>& paths);

/// Those of a data set, CLASS/NUMBER each. Grey ones are made coloured where the model reads colours; throws an Error
/// where it reads grey ones and these are coloured.
PictureList pictures_of_data(const Model& model, std::shared_ptr<const Dataset> data);

/// Those that features are of, to be shown.
PictureList pictures_of_features(const Model& model, const Features& features, const Preprocessing& input);

/// The features of all pictures, in their order. `each`, unless it is empty, is called with every picture's number,
/// what the model read of it, and its tokens. `inference` has to be for embedded_at_once images. Throws an Error for a
/// picture that cannot be read, the first of them, and for features that are no finite numbers.
using Seen = std::function<void(std::int64_t index, const Image& read, std::span<const float> tokens)>;
Features embed(const Model& model, const Inference& inference, const Preprocessing& input, const PictureList& pictures,
               bool inverted, const Seen& each = nullptr);

}  // namespace tessera::runtime
