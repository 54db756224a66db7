#include "runtime/sampling.hpp"

#include <algorithm>

#include "runtime/choose.hpp"
#include "runtime/error.hpp"
#include "runtime/tokens.hpp"

namespace tessera::runtime {

namespace {

std::size_t index_of(std::int64_t n) { return static_cast<std::size_t>(n); }

std::int64_t tokens_of(const Grid& grid) { return grid.rows * grid.columns; }

/// A batch of images, whose step keeps a cache.
class Sampler {
 public:
  Sampler(const TokenModel& model, const float* parameters, const float* packed, const Drawing& drawing)
      : model_(model),
        parameters_(parameters),
        packed_(packed),
        drawing_(drawing),
        images_(static_cast<std::int64_t>(drawing.start.size())) {
    check();
    tokens_.resize(index_of(images_ * tokens_of(drawing.grid)));
    read_.resize(index_of(images_));
    next_.resize(index_of(images_));
    uniforms_.resize(index_of(images_));
    logits_.resize(index_of(images_ * model.codes));
    cache_.resize(index_of(model.cache_bytes(images_)) / sizeof(float));
    scratch_.resize(index_of(model.step_scratch_bytes(images_)) / sizeof(float) + 1);
    choosing_.resize(index_of(tessera_choose_scratch_bytes(model.codes)) / sizeof(double) + 1);
  }

  std::vector<std::int32_t> run(const std::function<void(std::int64_t)>& progress) {
    const Grid &grid = drawing_.grid, &window = model_.window;
    const std::int64_t given = static_cast<std::int64_t>(drawing_.given.size()) / images_;
    for (std::int64_t at = 0; at < tokens_of(grid); ++at) {
      if (at < given) {
        for (std::int64_t image = 0; image < images_; ++image)
          token(image, at) = drawing_.given[index_of(image * given + at)];
      } else {
        const std::int64_t i = at / grid.columns, j = at % grid.columns;
        read_window(window_start(i, grid.rows, window.rows), window_start(j, grid.columns, window.columns), i, j);
        choose(at);
      }
      if (progress) progress(at + 1);
    }
    return std::move(tokens_);
  }

 private:
  void check() const {
    const Grid &grid = drawing_.grid, &window = model_.window;
    if (images_ < 1) throw Error("no image is asked for");
    if (grid.rows < window.rows || grid.columns < window.columns)
      fail("a grid of ", grid.rows, "x", grid.columns, " tokens is smaller than the window of ", model_.name, ", ",
           window.rows, "x", window.columns);
    if (grid.rows > most_side || grid.columns > most_side || images_ > most_side)
      fail(images_, " images of ", grid.rows, "x", grid.columns, " tokens are too many: at most ", most_side,
           " of each");
    demand_tokens(drawing_.start, 1, model_.codes);
    const auto given = static_cast<std::int64_t>(drawing_.given.size());
    if (given % images_ || given / images_ > tokens_of(grid))
      fail(given, " given tokens are not the beginning of ", images_, " images of ", tokens_of(grid), " tokens");
    if (given) demand_tokens(drawing_.given, given / images_, model_.codes);
  }

  std::int32_t& token(std::int64_t image, std::int64_t at) {
    return tokens_[index_of(image * tokens_of(drawing_.grid) + at)];
  }

  /// Makes the logits of position [i, j] of the grid, of the tokens before it in the window that begins there.
  void read_window(std::int64_t top, std::int64_t left, std::int64_t i, std::int64_t j) {
    const Grid& window = model_.window;
    const std::int64_t position = (i - top) * window.columns + (j - left);
    if (top != top_ || left != left_) cached_ = 0;
    top_ = top;
    left_ = left;
    for (; cached_ <= position; ++cached_) {
      const std::int64_t before = cached_ - 1;
      for (std::int64_t image = 0; image < images_; ++image)
        read_[index_of(image)] = before < 0 ? drawing_.start[index_of(image)]
                                            : token(image, (top + before / window.columns) * drawing_.grid.columns +
                                                               left + before % window.columns);
      if (const int code = model_.step(parameters_, packed_, cache_.data(), cached_, read_.data(), images_,
                                       logits_.data(), scratch_.data()))
        fail(model_.name, ": ", model_.error(code));
    }
  }

  void choose(std::int64_t at) {
    if (drawing_.uniforms) drawing_.uniforms(at, uniforms_);
    const int code =
        tessera_choose(logits_.data(), images_, model_.codes, drawing_.temperature, drawing_.top_k, drawing_.top_p,
                       drawing_.uniforms ? uniforms_.data() : nullptr, next_.data(), choosing_.data());
    if (code) fail(tessera_choose_error(code));
    for (std::int64_t image = 0; image < images_; ++image) token(image, at) = next_[index_of(image)];
  }

  static constexpr std::int64_t most_side = 4096;
  const TokenModel& model_;
  const float *parameters_, *packed_;
  const Drawing& drawing_;
  const std::int64_t images_;
  std::vector<std::int32_t> tokens_, read_, next_;
  std::vector<float> uniforms_, logits_, cache_, scratch_;
  std::vector<double> choosing_;
  std::int64_t top_ = -1, left_ = -1, cached_ = 0;  ///< the window in the cache, and how many of its rows are there
};

}  // namespace

std::int64_t window_start(std::int64_t i, std::int64_t all, std::int64_t window) {
  return std::min(std::max<std::int64_t>(i - window / 2, 0), all - window);
}

Uniforms uniforms_of(std::uint64_t seed, std::int64_t first) {
  return [seed, first](std::int64_t position, std::span<float> of_images) {
    tessera_uniforms(seed, first, static_cast<std::int64_t>(of_images.size()), position, of_images.data());
  };
}

std::vector<std::int32_t> draw_tokens(const TokenModel& model, const float* parameters, const float* packed,
                                      const Drawing& drawing, const std::function<void(std::int64_t)>& progress) {
  return Sampler(model, parameters, packed, drawing).run(progress);
}

}  // namespace tessera::runtime
