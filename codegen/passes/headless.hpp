// A classifier without its head.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Whether the outputs are a linear map of a row [B, D] for each image, with or without a bias and a softmax, or the
/// mean of two such maps (DeiT's distilled heads): the head, which reads the features.
bool has_head(const graph::Graph& declared);

/// Whether the model has features: a head, or, where it has no loss, outputs that are the features then: [B, D], or, of
/// chosen layers, [B, L, T, D] as its tokens [B, T, D], or a feature map [B, C, y, x] of a stack of maps.
bool embeds(const graph::Graph& declared);

/// The graph with what `embed` gives as outputs. "features" are the outputs or, [B, D], what the head reads; of two
/// heads the mean of what they read, as timm's forward_head(pre_logits=True) gives it; of a feature map they are its
/// tokens [B, y x, C], as those of one layer, [B, 1, y x, C]. "tokens" [B, T, D] are these, or else what the
/// first stack of blocks gives, with the norm behind it (timm's forward_features), and "pooling" [B, H, J] is what the
/// heads of a learned query behind it attend to; each only where the model has it.
graph::Graph embedding(const graph::Graph& declared);

}  // namespace tessera::codegen
