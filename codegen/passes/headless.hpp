// A classifier without its head.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Whether the outputs are a linear map of a row [B, D] for each image, with or without a bias and a softmax, or the
/// mean of two such maps (DeiT's distilled heads): the head, which reads the features.
bool has_head(const graph::Graph& declared);

/// Whether the model has features: a head, or, where it has no loss, outputs that are the features then: [B, D], or, of
/// chosen layers, [B, L, T, D] as its tokens [B, T, D].
bool embeds(const graph::Graph& declared);

/// The graph with what `embed` gives as outputs. "features" are the outputs or, [B, D], what the head reads; of two
/// heads the mean of what they read, as timm's forward_head(pre_logits=True) gives it. "tokens" [B, T, D] are what the
/// first stack of blocks gives, with the norm behind it (timm's forward_features), and "pooling" [B, H, J] is what the
/// heads of a learned query behind it attend to; each only where the model has it.
graph::Graph embedding(const graph::Graph& declared);

}  // namespace tessera::codegen
