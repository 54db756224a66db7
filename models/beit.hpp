// beit: BEiT (Bao et al. 2022) and BEiT v2 (Peng et al. 2022), with keys of timm's Beit.
#pragma once

#include "models/eva.hpp"

namespace tessera::models {

/// Positions are known by a bias for each way that two patches stand to each other.
template <class V>
using BeitBlock = GammaBlock<V, Attention<V, QvBias<V>, RelativeTable<V>>>;

constexpr VitSpec beit(std::int64_t width, std::int64_t heads, int depth, double layer_scale) {
  return {.width = width,
          .heads = heads,
          .depth = depth,
          .positions = Positions::none,
          .layer_scale = layer_scale,
          .final_norm = FinalNorm::after_pooling,
          .pooling = Pooling::mean};
}
using BeitBase = Vit<beit(768, 12, 12, 0.1), BeitBlock>;
using BeitLarge = Vit<beit(1024, 16, 24, 1e-5), BeitBlock>;

}  // namespace tessera::models
