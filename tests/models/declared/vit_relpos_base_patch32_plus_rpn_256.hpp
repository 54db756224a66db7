// timm's vit_relpos_base_patch32_plus_rpn_256, as its checkpoint has it: written by `tessera declare`.
#pragma once

#include "models/vit_relpos.hpp"

namespace tessera::models {

template <class V>
using VitRelposBasePatch32PlusRpn256Block = VitBlock<V, Attention<V, FusedQkv<V>, RelativeMlpOfBlock<V>>>;

using VitRelposBasePatch32PlusRpn256 = Vit<{
    .image = {24, 16},
    .patch = 8,
    .width = 24,
    .heads = 2,
    .depth = 2,
    .class_token = false,
    .positions = Positions::none,
    .norms = Norms::after,
    .pooling = Pooling::mean}, VitRelposBasePatch32PlusRpn256Block>;

}  // namespace tessera::models
