// Attention's backward pass as one kernel: the gradient of the scores, and from it those of queries, keys and values.
#pragma once

#include <optional>
#include <vector>

#include "codegen/cuda/attention.hpp"

namespace tessera::codegen::cuda {

/// What the five kernels of attention's backward pass, and copies of what they give, have to do with each other.
struct AttentionGradient {
  /// One of the kernels, by its number among them, and the axes in it.
  struct Part {
    int kernel = -1;
    Attention::Axes axes;
    ExprId factor{};  ///< an expression: the factor of a product that no other of the kernels makes
    ExprId loaded{};  ///< an expression of a copy: what it copies
  };
  Part mixed;                                      ///< gives dp; its factor is the value
  ExprId gradient;                                 ///< its other one
  Part softmax;                                    ///< gives what scores change by
  std::vector<ExprId> p, dp;                       ///< its expressions that load them
  ExprId change;                                   ///< the one that it stores
  std::optional<Part> again;                       ///< makes p; else it is in memory
  Part of_query, of_key, of_value;                 ///< products; the last one's factor is the gradient once more
  std::optional<Part> copies[3];                   ///< of what these give
  std::int64_t rows = 0, keys = 0, most_keys = 0;  ///< most_keys: filled up to a multiple of 16
  std::int64_t width = 0;
};

/// Nothing where these kernels, and the copies behind the first five, are not what device/attention_gradient.h can do.
std::optional<AttentionGradient> attention_gradient_of(const KernelProgram& program,
                                                       const std::vector<const Kernel*>& kernels);
/// Of a kernel that is fused of them, and maybe of what makes p again before them.
std::optional<AttentionGradient> attention_gradient_of(const KernelProgram& program, const Kernel& fused);
/// All kernels of such a one, itself the last.
std::vector<const Kernel*> parts_of_gradient(const Kernel& fused);

/// Has one kernel compute all of attention's backward pass, where nobody else needs what is between its parts.
void fuse_attention_gradients(KernelProgram& program);

}  // namespace tessera::codegen::cuda
