// Attention's probabilities are recomputed for its backward pass, so that forward keeps two numbers of a row.
#pragma once

#include <optional>
#include <vector>

#include "codegen/cuda/attention_gradient.hpp"

namespace tessera::codegen::cuda {

/// The part of attention's backward pass that makes the probabilities anew, from the scores' products before it.
struct AttentionRecompute {
  ExprId score, sum;     ///< expressions: of what the softmax is taken, and in that the sum of products
  ExprId most, inverse;  ///< loads of what forward has kept of the row
  Access p;              ///< what it stands for
};
/// Of a kernel as recompute_attention makes it; nothing of any other.
std::optional<AttentionRecompute> attention_recompute_of(const Kernel& kernel);

/// Where all readers of what a softmax gives are attention's two kernels, the one backward makes it again: it is never
/// stored, and of the same bits. Forward keeps, of each row, the largest score and one over the sum of
/// exponentials. Not of heads wider than the 64 columns that backward makes at a time, unless `everywhere`: it would
/// compute them again for each 64.
void recompute_attention(KernelProgram& program, bool everywhere);

}  // namespace tessera::codegen::cuda
