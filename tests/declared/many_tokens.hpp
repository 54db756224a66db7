// Vision Transformers of images of many tokens: what grows with their number shows.
#pragma once

#include "models/vit.hpp"

namespace tessera::test {

using ManyTokens = models::Vit<{
    .image = {320, 320}, .patch = 4, .channels = 1, .width = 24, .heads = 1, .depth = 1, .classes = 2, .hidden = 16}>;

/// Of 1,522 and of 962 tokens: nearly as many keys as a block of attention's queries goes by at once, in bf16, and as
/// one of an int8 model is rounded with.
template <std::int64_t side>
using Keys = models::Vit<{
    .image = side, .patch = 4, .channels = 1, .width = 128, .heads = 1, .depth = 2, .classes = 2, .hidden = 16}>;
using ManyKeys = Keys<156>;
using SomeKeys = Keys<124>;

/// Of 1,682 tokens and a head of 512 numbers, of which a block copies most.
using WideHead = models::Vit<{
    .image = 164, .patch = 4, .channels = 1, .width = 512, .heads = 1, .depth = 2, .classes = 2, .hidden = 16}>;

}  // namespace tessera::test
