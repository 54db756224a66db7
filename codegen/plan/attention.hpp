// Attention as one kernel, by blocks of queries, and its backward pass as another one.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// Positions in a running order of the scores and the softmax whose probabilities the GEMM at `mix` takes, if a back
/// end says that the three are attention; what runs between them and it, as the values that it weighs, may as well run
/// before them.
struct BeforeMix {
  std::size_t scores, softmax;
};
using IsAttention = std::function<bool(const BeforeMix& before)>;
std::optional<BeforeMix> attention_before(const KernelProgram& program, const std::vector<Item>& order, std::size_t mix,
                                          const IsAttention& is_attention);
/// Scores, their softmax and what it weighs become one kernel where the scores of an image are larger than L1:
/// it goes by blocks of queries of one head and, where keys are many, of keys (online_softmax.hpp), whose scores lie on
/// the stack. The last one takes up the other two, and what adds to the scores between them.
void attend_in_blocks(KernelProgram& program);
/// Attention's backward pass becomes one kernel where the scores of an image are many and no row of them is summed over
/// (passes/row_sums.hpp): probabilities, the gradients of values, scores and queries within the keys' gradient, by
/// blocks of queries of one head and, where keys are many, of keys. Probabilities and scores' gradients lie on the
/// stack; sums go on from block to block, so that they have the bits of one sum.
void differentiate_attention_in_blocks(KernelProgram& program);
/// The kernels of the backward passes that are to become one each.
std::set<int> attention_gradients(const KernelProgram& program);
/// Where keys are so many, rows of the scores that lie on the stack are as far apart as a block may have keys.
void lay_out_blocks(const KernelProgram& program, Layouts& layouts);
/// Whether a kernel is one of these two.
bool attends(const Kernel& kernel);
/// Of a kernel in one of them: which axis are the queries, the other axes that all go by (the batch, heads), in one
/// order, and the keys, where it has them: an axis, or one of rows of keys of which each has `across`.
struct AttentionAxes {
  int queries = -1;
  std::vector<int> heads;
  int keys = -1;
  std::int64_t across = 1;
};
/// Of those that run within it and, last, of itself.
std::vector<AttentionAxes> attention_axes(const Kernel& kernel);
Schedule attention_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                            const Target& target);

}  // namespace tessera::codegen
