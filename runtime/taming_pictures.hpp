// Pictures that a transformer draws, and the half of one that it is given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/forward_pass.hpp"
#include "runtime/sampling.hpp"
#include "runtime/taming_program.hpp"

namespace tessera::runtime {

/// What is drawn of several pictures, and how.
struct PictureDrawing {
  Grid grid;
  std::int64_t count = 16;
  std::optional<std::int64_t> of_class{};  ///< none: of all classes in turn
  std::vector<std::int32_t> given{};       ///< tokens that each picture begins with
  float temperature = 1, top_p = 1;
  std::int64_t top_k = 0;
  std::uint64_t seed = 1;
  bool greedy = false;
};

/// The tokens of the rows that a picture's upper half, or all that there is of it, covers.
std::vector<std::int32_t> tokens_of_half(const Taming& taming, const PackedPass& encode,
                                         const std::filesystem::path& path);

/// Pixels [count, channels, height, width] in [-1, 1], of the transformer's parameters. A grid that is larger than the
/// window is decoded window by window: each token's square is that of the window which the token was drawn in.
/// `progress` is called with the number of tokens that came to those done.
std::vector<float> drawn_pictures(const Taming& taming, const PackedPass& decode, const float* parameters,
                                  const float* packed, const PictureDrawing& drawing,
                                  const std::function<void(std::int64_t tokens)>& progress = nullptr);

}  // namespace tessera::runtime
