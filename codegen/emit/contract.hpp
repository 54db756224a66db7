// What a model costs.
#pragma once

#include <cstdint>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// What a model costs: numbers that are known when it is generated, but for the batch. Bytes are those of memory that
/// the caller brings; FLOPs are the declaration's, counted as flops() in codegen/passes says: where the programs leave
/// out what nobody reads, they execute fewer.
struct Contract {
  std::int64_t parameters = 0;       ///< numbers that are learned
  std::int64_t parameter_bytes = 0;  ///< with the gaps between them; the gradients take as many
  std::int64_t optimizer_bytes = 0;  ///< of training, as are train_bytes and train_flops: zero where there is no loss
  Extent forward_bytes;  ///< packed parameters or, where there are none, parameters; images, outputs and scratch
  Extent train_bytes;    ///< parameters, as they are and packed, gradients, optimiser state, images, labels or targets,
                         ///< outputs, loss; not scratch, which is for as many images as are worked on at once
  Extent forward_flops;
  Extent train_flops;  ///< of one step: loss, gradients and update
};
Contract contract(const ModelFiles& model);

}  // namespace tessera::codegen
