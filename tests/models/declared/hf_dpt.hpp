// A model of depth of Hugging Face's DPT, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/dpt.hpp"

namespace tessera::models {

struct HfDpt : Dpt<{
    .image = 32,
    .channels = 1,
    .width = 4,
    .heads = 2,
    .depth = 4,
    .mlp = 2,
    .classes = 0,
    .final_norm = FinalNorm::none,
    .layers = {0, 1, 2, 3},
    .epsilon = 1e-12}, {.maps = {2, 2, 4, 2}, .fusion = 2, .readout = Readout::projected}> {
  static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5, .crop = 1, .fit = Fit::squash};
};

}  // namespace tessera::models
