// A Vision Transformer of an image of 6,401 tokens: what grows with their number shows.
#pragma once

#include "models/vit.hpp"

namespace tessera::test {

using ManyTokens = models::Vit<{
    .image = {320, 320}, .patch = 4, .channels = 1, .width = 24, .heads = 1, .depth = 1, .classes = 2, .hidden = 16}>;

}  // namespace tessera::test
