// The sample model as the runtime sees it.
#pragma once

#include "runtime/model.hpp"
#include "tests/runtime/sample_model.h"

namespace tessera::runtime {

inline Model sample_model() {
  return {.name = "sample",
          .declaration_hash = SAMPLE_DECLARATION_HASH,
          .parameters = sample_parameters,
          .parameter_floats = SAMPLE_PARAMETER_FLOATS,
          .optimizer_state = {"optimizer.m.", "optimizer.v."},
          .image_shape = {1, 28, 28},
          .classes = 10,
          .alignment = 64,
          .outputs_are_probabilities = false,
          .summary = "images [B, 784]\n",
          .optimizer = "Adam",
          .schedule = "constant",
          .forward_scratch_bytes = sample_scratch_bytes,
          .evaluate_scratch_bytes = sample_scratch_bytes,
          .train_scratch_bytes = sample_scratch_bytes,
          .images_at_once = sample_images_at_once,
          .inspect_scratch_bytes = sample_scratch_bytes,
          .embed_scratch_bytes = sample_scratch_bytes,
          .error = sample_error,
          .isa = sample_isa,
          .init = sample_init,
          .pack_forward = sample_pack_forward,
          .forward = sample_forward,
          .evaluate = sample_evaluate,
          .inspect = sample_inspect,
          .embed = sample_embed,
          .embedding = {.features = 784},
          .layers = sample_layers};
}

}  // namespace tessera::runtime
