// Tokens that come from outside: files, callers.
#pragma once

#include <cstdint>
#include <span>

namespace tessera::runtime {

/// Throws an Error that names the image, the position and the token where one of tokens [images, positions] is not in
/// [0, codes), or where they are no whole number of images.
void demand_tokens(std::span<const std::int32_t> tokens, std::int64_t positions, std::int64_t codes);

}  // namespace tessera::runtime
