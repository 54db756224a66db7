// A Swin Transformer of Hugging Face's Swin of transformers 5, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/swin.hpp"

namespace tessera::models {

using HfSwinModel = Swin<{
    .image = 8,
    .patch = 2,
    .width = 2,
    .heads = {1, 2},
    .depths = {2, 1},
    .windows = {2, 2},
    .mlp = 2,
    .classes = 0}>;

}  // namespace tessera::models
