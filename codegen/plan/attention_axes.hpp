// Which axes attention's kernels go by, and what passes ask of such kernels.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "codegen/plan/attention.hpp"

namespace tessera::codegen {

/// Those of attention's kernels; added.queries is -1 where nothing is added to the scores.
struct ForwardAxes {
  AttentionAxes scores, added, softmax, mix;
};
/// `added`: what adds to the scores before the softmax; null: nothing does. Nothing: these are no attention.
std::optional<ForwardAxes> axes_of(const Kernel& scores, const Kernel* added, const Kernel& softmax, const Kernel& mix);

/// The kernels of attention's backward pass, where probabilities are recomputed, in the order in which a block runs
/// through them. One of the first two gives the probabilities, of the scores, row max and row sum of exponentials; the
/// later one the scores' gradient, which is made of what the other one gives.
struct Backward {
  const Kernel &first, &second;
  const Kernel& values;  ///< the values' gradient, a sum over the queries of probabilities and of what comes in
  const Kernel& mix;     ///< the queries' gradient, a sum over the keys
  const Kernel& keys;    ///< the keys' gradient, a sum over the queries of the scores' gradient and of them
};
/// Of each of them, in that order; nothing: these are no backward pass that goes by blocks.
std::optional<std::vector<AttentionAxes>> axes_of(const Backward& b);

/// The only access by which a kernel reads a tensor; null: there is none, or several.
const Access* only_load(const Kernel& k, TensorId tensor);
/// An access by which a row kernel stores a factor of a product; null: there is none.
const Access* store_for(const Kernel& row, const Kernel& product);
/// Whether a kernel is a GEMM of one image, and nothing is fused into it.
bool is_product_of_image(const Kernel& k);
/// Whether two kernels give the same in either order.
bool independent(const Kernel& a, const Kernel& b);
/// The reals of a tensor, of one image.
std::int64_t reals_of(const Tensor& tensor);

/// Whether a tensor is needed by the kernels alone that become one, so that it needs no place in memory.
using Inside = std::function<bool(TensorId)>;
bool is_inside(const KernelProgram& program, TensorId tensor, const std::set<int>& kernels);
/// Has a kernel read and store one tensor in the place of another one.
void rename(Kernel& kernel, TensorId from, TensorId to);
/// What a softmax gives takes the places of the scores that it is made of, in whatever else reads it too.
void share_place(Kernel& softmax, const std::vector<Kernel*>& readers, TensorId of_scores, TensorId weights);

}  // namespace tessera::codegen
