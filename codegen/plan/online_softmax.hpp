// The online softmax: attention's row max, row sum and weighted values go on from one block of keys to the next.
#pragma once

#include <numeric>

#include "codegen/plan/attention_axes.hpp"

namespace tessera::codegen {

/// At most so many keys are a block.
inline constexpr std::int64_t keys_of_forward_block = 512;
/// A block has whole vectors of keys and, of keys in rows of `across`, whole rows.
constexpr std::int64_t unit_of_keys(std::int64_t across) {
  const std::int64_t both = std::lcm(std::int64_t{32}, across);
  return both <= keys_of_forward_block ? both : across;
}

/// Has attention of these three kernels go by blocks of keys, where all that they read of a key lies equally far apart
/// and the softmax's row sum divides what `mix` gives: adds the state that goes on from block to block, what begins it,
/// and what rescales the weighted values of earlier blocks as the row max grows (Milakov and Gimelshein, Online
/// normalizer calculation for softmax, 2018; Dao et al., FlashAttention, 2022, algorithm 1). `fused` has roles and
/// parts of attention, to which two are added. False: they have another form, and stay as they are.
bool go_by_keys(KernelProgram& program, Fused& fused, Kernel& mix, const ForwardAxes& axes);
/// Those of the kernels that it adds, of those of the mix: heads, queries and what is weighed are their axes.
AttentionAxes axes_around(const AttentionAxes& of_mix);

}  // namespace tessera::codegen
