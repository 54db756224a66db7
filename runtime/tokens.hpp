// Tokens that come from outside: files, callers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::runtime {

/// Throws an Error that names the image, the position and the token where one of tokens [images, positions] is not in
/// [0, codes), or where they are no whole number of images.
void demand_tokens(std::span<const std::int32_t> tokens, std::int64_t positions, std::int64_t codes);

/// The numbers of codes that an encoder gives, as tokens. Throws an Error where one is none in [0, codes): where the
/// encoder's parameters are so large that no distance is finite, no code is the nearest.
std::vector<std::int32_t> tokens_of_numbers(std::span<const float> numbers, std::int64_t codes);

}  // namespace tessera::runtime
