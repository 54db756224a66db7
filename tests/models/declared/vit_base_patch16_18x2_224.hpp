// timm's vit_base_patch16_18x2_224, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_parallel.hpp"

namespace tessera::models {

template <class V>
using VitBasePatch1618x2224Block = ParallelThingsBlock<V>;

using VitBasePatch1618x2224 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .mlp = 1,
    .classes = 10,
    .layer_scale = 1e-05}, VitBasePatch1618x2224Block>;

}  // namespace tessera::models
