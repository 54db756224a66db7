// Checkpoints of Taming Transformers (Esser et al. 2021): one file holds the transformer and the VQGAN of its tokens.
#pragma once

#include <string>
#include <vector>

#include "runtime/model.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {

/// A file's tensors by the keys of the model, where that is the transformer (it has `tok_emb.weight` and `pos_emb`) or
/// a VQGAN or half of one (`quantize.embedding.weight`); of other models as it is. Of the transformer `transformer.`
/// is taken from the keys' front; `attn.mask`, the causal mask, and the stages that are other models
/// (`first_stage_model.`, `cond_stage_model.`) go into `left_out`. Of a VQGAN what stands behind `first_stage_model.`
/// is read, where there is such, and what belongs to a half or a loss that the model does not have is left out.
/// Throws an Error where a key is there with its front and without.
Safetensors from_taming(Safetensors file, const Model& model, std::vector<std::string>& left_out);

/// The transformer's tensors by the keys of published checkpoints: with `transformer.` in front.
Safetensors as_taming(Safetensors file);

}  // namespace tessera::runtime
