// A SAM image encoder of Hugging Face's SAM, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/sam.hpp"

namespace tessera::models {

using HfSam = SamEncoder<{
    .image = 8,
    .patch = 2,
    .width = 4,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .window = 3,
    .whole_every = 2,
    .neck = 4}>;

}  // namespace tessera::models
