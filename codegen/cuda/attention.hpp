// Attention's forward pass as one kernel: scores, their softmax, and the mix of values by it.
#pragma once

#include <optional>
#include <vector>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen::cuda {

/// What the three kernels of attention have to do with each other. The same axis has a number in each of them.
struct Attention {
  struct Axes {
    int row = -1, key = -1, width = -1;  ///< width: along which query and key, or the value, are multiplied whole
    std::vector<int> groups;             ///< of each of which attention is one
  };
  Axes scores, softmax, mix;
  ExprId query, key;                               ///< expressions of scores
  ExprId score;                                    ///< expressions of softmax: what it is taken of,
  ExprId sum;                                      ///< in that the scores as they are,
  ExprId p;                                        ///< and what it gives
  ExprId value;                                    ///< an expression of mix
  std::int64_t rows = 0, keys = 0, most_keys = 0;  ///< most_keys: filled up to a multiple of 16
};

/// Nothing where these kernels are no attention that device/attention.h can do.
std::optional<Attention> attention_of(const KernelProgram& program, const Kernel& scores, const Kernel& softmax,
                                      const Kernel& mix);

/// All axes of one of the kernels, in one order.
std::vector<int> all_of(const Attention::Axes& axes);
/// The same number of a tensor, where the axes of one kernel stand for those of another.
bool same_number(const Access& a, const Attention::Axes& in_a, const Access& b, const Attention::Axes& in_b);

/// Has a kernel that mixes values compute their scores and softmax itself, where nobody else needs the scores.
void fuse_attention(KernelProgram& program);

}  // namespace tessera::codegen::cuda
