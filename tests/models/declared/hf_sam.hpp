// A SAM image encoder of Hugging Face's SAM, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/sam.hpp"

namespace tessera::models {

struct HfSam : SamEncoder<{
    .image = 8,
    .patch = 2,
    .width = 4,
    .heads = 2,
    .depth = 2,
    .mlp = 2,
    .window = 3,
    .whole_every = 2,
    .neck = 4}> {
  static constexpr Preprocessing input{.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}, .crop = 1, .interpolation = Interpolation::bilinear, .fit = Fit::pad};
};

}  // namespace tessera::models
