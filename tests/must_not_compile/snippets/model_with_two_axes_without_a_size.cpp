// Sequences of any length: sizes other than the batch have to be known.
// expect: Sequence takes images [B, T, D=192]: axis 1 is T, needs a size: only the batch, the first axis, is known when
// the program runs [model-images]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

inline constexpr auto T = axis<"T">;

#ifdef TWIN
struct Sequence : Module {
  Linear<D, C> head;
  TESSERA_MEMBERS(Sequence, head)
  static constexpr Recipe recipe{};
  Tensor<B, C> forward(Tensor<B, N, D> x) const { return head(einsum<"b t d -> b d">(x)); }
};
#else
struct Sequence : Module {
  Linear<D, C> head;
  TESSERA_MEMBERS(Sequence, head)
  static constexpr Recipe recipe{};
  Tensor<B, C> forward(Tensor<B, T, D> x) const { return head(einsum<"b t d -> b d">(x)); }
};
#endif

inline auto g() { return trace<Sequence>("sequence"); }

}  // namespace tessera
