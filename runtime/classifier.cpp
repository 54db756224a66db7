#include "runtime/classifier.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <utility>

#include "runtime/depth_map.hpp"
#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/inference.hpp"
#include "runtime/preprocess.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t images_at_once = 16;  // of a call with more: what it takes of memory does not grow further

std::int64_t image_floats(const Model& model) {
  return size_product({model.image_shape[0], model.image_shape[1], model.image_shape[2]});
}

void check(const RgbPictures& pictures) {
  if (!pictures.rgb) fail("there are no pictures: the pointer is null");
  if (pictures.count < 1) fail("there are no pictures: their number is ", pictures.count);
  const auto [rgb, count, width, height, stride] = pictures;
  if (width < 1 || height < 1 || width > largest_side || height > largest_side)
    fail("a picture of ", width, "x", height, " cannot be used: each side is from 1 to ", largest_side, " pixels");
  if (stride < 3 * width)
    fail("rows of ", width, " pixels of three bytes cannot lie ", stride, " bytes behind each other");
}

thread_local char sentence[8192];  // of its size from the start: an error must not need memory

}  // namespace

Network::Network(const Model& model, Arena parameters)
    : model_(model), parameters_(std::move(parameters)), packed_(packed(model, parameters_->floats())) {
  if (model.packed_forward_floats > 0) parameters_.reset();
}

void Network::forward(const RgbPictures& pictures, const Preprocessing& input, float* outputs) const {
  apply(pictures, input, [&](const float* parameters, Workspace& own, std::int64_t first, std::int64_t images) {
    return model_.forward(parameters, packed_.floats(), own.input.floats(), images, outputs + first * model_.classes,
                          own.scratch.data());
  });
}

void Network::embed(const RgbPictures& pictures, const Preprocessing& input, float* features) const {
  apply(pictures, input, [&](const float* parameters, Workspace& own, std::int64_t first, std::int64_t images) {
    return model_.embed(parameters, packed_.floats(), own.input.floats(), images,
                        features + first * model_.embedding.features, own.tokens.floats(), own.pooling.floats(),
                        own.scratch.data());
  });
}

template <class Run>
void Network::apply(const RgbPictures& pictures, const Preprocessing& input, const Run& run) const {
  check(pictures);
  const auto [rgb, count, width, height, stride] = pictures;
  const std::int64_t channels = model_.image_shape[0], floats = image_floats(model_);
  std::unique_ptr<Workspace> workspace = take(std::min(count, images_at_once));
  for (std::int64_t first = 0; first < count; first += images_at_once) {
    const std::int64_t images = std::min(count - first, images_at_once);
    for (std::int64_t i = 0; i < images; ++i) {
      const Image picture = image_of_rgb(rgb + (first + i) * height * stride, width, height, stride, channels);
      const Image image = prepared(picture, input, model_.image_shape[1], model_.image_shape[2]);
      normalize(image, input, workspace->input.floats() + i * floats);
    }
    runtime::check(model_, run(parameters_ ? parameters_->floats() : nullptr, *workspace, first, images));
  }
  give_back(std::move(workspace));
}

std::unique_ptr<Network::Workspace> Network::take(std::int64_t images) const {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::ranges::find_if(idle_, [&](const auto& idle) { return idle->images >= images; });
    const auto chosen = fits == idle_.end() && !idle_.empty() ? idle_.begin() : fits;  // too small: makes room for one
    if (chosen != idle_.end()) {
      std::unique_ptr<Workspace> workspace = std::move(*chosen);
      idle_.erase(chosen);
      if (workspace->images >= images) return workspace;
    }
  }
  const auto floats = [&](std::int64_t of_image) {
    return Arena::of_floats(size_product({images, of_image}), model_.alignment);
  };
  const std::int64_t embed = model_.embed_scratch_bytes ? model_.embed_scratch_bytes(images) : 0;
  return std::make_unique<Workspace>(
      Workspace{images, floats(image_floats(model_)), floats(model_.embedding.token_floats()),
                floats(model_.embedding.pooling_floats()),
                Arena(std::max(model_.forward_scratch_bytes(images), embed), model_.alignment)});
}

void Network::give_back(std::unique_ptr<Workspace> workspace) const {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workspace));
}

Classifier::Classifier(const Model& model, const Preprocessing& declared, const char* weights) : model_(model) {
  if (!weights) fail("there are no weights to open: the path is null");
  Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  std::ostream silent(nullptr);
  usage_ = load_parameters(weights, model, parameters.floats(), silent).usage.value_or(Usage{declared, {}});
  if (model.depth != Depth::none && !covers_pictures(usage_.input))
    fail(weights, " says that ", model.name,
         " reads parts of pictures, or more than they hold: of whole ones it cannot ", "tell depths");
  usage_.classes.resize(model.depth == Depth::none ? static_cast<std::size_t>(model.classes) : 0);
  for (std::size_t i = 0; i < usage_.classes.size(); ++i)
    if (usage_.classes[i].empty()) usage_.classes[i] = std::to_string(i);
  network_.emplace(model, std::move(parameters));
}

void Classifier::classify(const RgbPictures& pictures, std::int64_t top, std::int32_t* labels,
                          float* probabilities) const {
  if (top < 1 || top > model_.classes)
    fail(model_.name, " tells ", model_.classes, " classes apart: ", top, " of them cannot be asked for");
  if (!labels || !probabilities) fail("there is no room for the answers: a pointer is null");
  const auto classes = static_cast<std::size_t>(model_.classes);
  std::vector<float> rows(
      static_cast<std::size_t>(size_product({std::max<std::int64_t>(pictures.count, 0), model_.classes})));
  network_->forward(pictures, usage_.input, rows.data());
  for (std::int64_t i = 0; i < pictures.count; ++i) {
    const std::vector<float> sure =
        runtime::probabilities(model_, std::span(rows).subspan(static_cast<std::size_t>(i) * classes, classes));
    if (!std::ranges::all_of(sure, [](float value) { return std::isfinite(value); }))
      fail(model_.name, " has no finite answer for picture ", i);
    for (const std::int32_t label : likeliest(sure, top)) {
      *labels++ = label;
      *probabilities++ = sure[static_cast<std::size_t>(label)];
    }
  }
}

void Classifier::embed(const RgbPictures& pictures, float* embeddings) const {
  if (!embeddings) fail("there is no room for the embeddings: the pointer is null");
  network_->embed(pictures, usage_.input, embeddings);
}

void Classifier::depth(const RgbPictures& pictures, float* depths) const {
  if (!depths) fail("there is no room for the depths: the pointer is null");
  DepthMap map{model_.image_shape[1], model_.image_shape[2], {}};
  map.depths.resize(static_cast<std::size_t>(model_.classes));
  RgbPictures one = pictures;
  one.count = std::min<std::int64_t>(pictures.count, 1);  // and no more at once: each takes much memory
  for (std::int64_t i = 0; i < std::max<std::int64_t>(pictures.count, 1); ++i) {
    network_->forward(one, usage_.input, map.depths.data());
    if (!std::ranges::all_of(map.depths, [](float value) { return std::isfinite(value); }))
      fail(model_.name, " has no finite answer for picture ", i);
    depths = std::ranges::copy(scaled(map, one.height, one.width).depths, depths).out;
    one.rgb += one.height * one.stride;
  }
}

const char* Classifier::label(std::int32_t index) const {
  const auto at = static_cast<std::size_t>(index);
  return index >= 0 && at < usage_.classes.size() ? usage_.classes[at].c_str() : nullptr;
}

void check_built_for(const Model& model, std::int32_t version, std::uint64_t declaration_hash) {
  if (version != classifier_version)
    fail("the program was compiled for version ", version, " of the interface of ", model.name, ", the library has ",
         classifier_version);
  if (declaration_hash != model.declaration_hash)
    fail("the program was compiled for another declaration of ", model.name, " than the library's");
}

const char* last_error() noexcept { return sentence; }

void remember_error(const char* text) noexcept { std::strncpy(sentence, text, sizeof sentence - 1); }

}  // namespace tessera::runtime
