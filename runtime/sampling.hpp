// Images drawn token by token: the loop over an emitted step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// A model of tokens as it was generated, NAME_step and what belongs to it: the fields are the functions of NAME.h.
struct TokenModel {
  std::string_view name;
  std::int64_t codes = 0;
  Grid window;  ///< the positions, row by row
  std::int64_t (*cache_bytes)(std::int64_t batch) = nullptr;
  std::int64_t (*step_scratch_bytes)(std::int64_t batch) = nullptr;
  int (*step)(const float* parameters, const float* packed, float* cache, std::int64_t position,
              const std::int32_t* tokens, std::int64_t batch, float* outputs, void* scratch) = nullptr;
  const char* (*error)(int code) = nullptr;
};

/// Writes a number in [0, 1) for each image: those that decide the tokens at a position of the grid.
using Uniforms = std::function<void(std::int64_t position, std::span<float> of_images)>;
/// Those of tessera_uniforms: for images first, first + 1, ...
Uniforms uniforms_of(std::uint64_t seed, std::int64_t first);

/// Where the window of so many positions begins that predicts position i of `all`: i in its middle, but at both ends.
std::int64_t window_start(std::int64_t i, std::int64_t all, std::int64_t window);

/// What is drawn, and how: runtime/choose.hpp says what temperature, top_k and top_p do.
struct Drawing {
  Grid grid;
  std::vector<std::int32_t> start;  ///< by image: the token that is read first
  std::vector<std::int32_t> given;  ///< [images, n]: the first n tokens of each image, row by row
  float temperature = 1;
  std::int64_t top_k = 0;
  float top_p = 1;
  Uniforms uniforms;  ///< none: of all codes the most probable one
};

/// tokens [images, grid]. Each is chosen by the step's logits, at its position in the window, of those before it in a
/// window around it, which begins at min(max(i - w / 2, 0), size - w) along each axis (Esser et al. 2021, section 3.3):
/// of a grid as large as the window that is all of them. Where the window stays where it was, the cache does, too.
/// `progress` is called behind each position with how many are done.
/// Throws an Error for a grid that is smaller than the window, for a start or given token that is none of the codes
/// (which says which), for more given tokens than the grid has, and for what the step or the choice refuses.
std::vector<std::int32_t> draw_tokens(const TokenModel& model, const float* parameters, const float* packed,
                                      const Drawing& drawing,
                                      const std::function<void(std::int64_t done)>& progress = nullptr);

}  // namespace tessera::runtime
