#include "runtime/embed.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>

#include "runtime/arena.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/parallel.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/progress.hpp"

namespace tessera::runtime {
namespace {

bool is_picture(const std::filesystem::path& path) {
  std::string kind = path.extension().string();
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::count(std::array{".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm"}, kind) > 0;
}

/// In the order of their names, folder by folder; what is hidden does not count. Links to folders are not followed.
void find_pictures(const std::filesystem::path& folder, std::vector<std::filesystem::path>& found) {
  for (const std::filesystem::path& path : list_folder(folder)) {
    if (path.filename().string().starts_with('.')) continue;
    const std::filesystem::file_status status = std::filesystem::symlink_status(path);
    if (std::filesystem::is_directory(status))
      find_pictures(path, found);
    else if (is_picture(path))
      found.push_back(path);
  }
}

/// As they are named, one by one.
PictureList pictures_at(const Model& model, std::vector<std::filesystem::path> files) {
  PictureList pictures;
  for (const std::filesystem::path& file : files) pictures.names.push_back(file.string());
  pictures.read = [channels = model.image_shape[0], files = std::move(files)](std::int64_t index) {
    const std::filesystem::path& file = files[static_cast<std::size_t>(index)];
    return decode_image(read_file(file, longest_picture), channels, file.string());
  };
  return pictures;
}

}  // namespace

PictureList pictures_of_files(const Model& model, const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(path, unknown)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    find_pictures(path, files);
    if (files.size() == before) fail("there are no PNG, JPEG, BMP, PGM or PPM pictures in ", path.string());
  }
  return pictures_at(model, std::move(files));
}

PictureList pictures_of_data(const Model& model, std::shared_ptr<const Dataset> data) {
  const std::int64_t channels = model.image_shape[0];
  if (channels != data->channels && data->channels != 1)
    fail(data->source, " have ", data->channels, " channels, and ", model.name, " reads ", channels);
  PictureList pictures;
  pictures.prepared = data->height == model.image_shape[1] && data->width == model.image_shape[2];
  for (std::int64_t i = 0; i < data->size(); ++i)
    pictures.names.push_back(text(data->called(data->labels[static_cast<std::size_t>(i)]), "/", i));
  pictures.read = [channels, data = std::move(data)](std::int64_t index) {
    const std::span<const std::uint8_t> pixels = data->image(index);
    Image image{channels, data->height, data->width, {}};
    for (std::int64_t c = 0; c < channels; c += data->channels)
      image.pixels.insert(image.pixels.end(), pixels.begin(), pixels.end());
    return image;
  };
  return pictures;
}

PictureList pictures_of_features(const Model& model, const Features& features, const Preprocessing& input) {
  if (!features.data.empty()) {
    DataChoice choice;
    choice.folder = features.data;
    auto data = std::make_shared<Dataset>(load(choice, features.split, model, input));
    if (data->size() < features.size())
      fail(features.data.string(), " has ", data->size(), " ", name(features.split),
           " images, and there are features of ", features.size());
    return pictures_of_data(model, std::move(data));
  }
  // A folder among them, whose pictures would be in their place, is none that embed wrote.
  return pictures_at(model, {features.names.begin(), features.names.end()});
}

Features embed(const Model& model, const Inference& inference, const Preprocessing& input, const PictureList& pictures,
               bool inverted, const Seen& each) {
  const std::int64_t channels = model.image_shape[0], height = model.image_shape[1], width = model.image_shape[2];
  const std::int64_t floats = size_product({channels, height, width}), tokens = model.embedding.token_floats();
  Features features{model.embedding.features, pictures.names, {}};
  if (model.embedding.layers) features.dense = {model.embedding.layers, model.embedding.tokens, model.embedding.width};
  features.numbers.reserve(static_cast<std::size_t>(size_product({features.size(), features.width})));
  const Arena images = Arena::of_floats(size_product({embedded_at_once, floats}), model.alignment);
  std::vector<Image> prepared_images(static_cast<std::size_t>(embedded_at_once));
  Inference::Embedded embedded;
  Counter counter("embedding pictures", pictures.size());
  for (std::int64_t first = 0; first < pictures.size(); first += embedded_at_once) {
    const std::int64_t count = std::min(embedded_at_once, pictures.size() - first);
    parallel_for(count, [&](std::int64_t i) {
      Image& image = prepared_images[static_cast<std::size_t>(i)];
      image = pictures.read(first + i);
      if (!pictures.prepared) image = prepared(image, input, height, width);
      if (inverted) invert(image);
      normalize(image, input, images.floats() + i * floats);
    });
    inference.embed(images.floats(), count, embedded);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row =
          std::span(embedded.features)
              .subspan(static_cast<std::size_t>(i * features.width), static_cast<std::size_t>(features.width));
      check_finite(row,
                   text("the features of ", without_controls(pictures.names[static_cast<std::size_t>(first + i)])));
      features.numbers.insert(features.numbers.end(), row.begin(), row.end());
      if (each)
        each(
            first + i, prepared_images[static_cast<std::size_t>(i)],
            std::span(embedded.tokens).subspan(static_cast<std::size_t>(i * tokens), static_cast<std::size_t>(tokens)));
    }
    counter.add(count);
  }
  return features;
}

}  // namespace tessera::runtime
