// The batch is an axis of its own: nobody could check that it is even.
// expect: Pairs takes images [IMAGES, D=192]: axis 0 is IMAGES (IMAGES := 2*G), needs the batch: an axis without a
// size, as axis<B> [model-images]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

inline constexpr auto G = axis<"G">;
inline constexpr auto IMAGES = axis<"IMAGES", 2_c * G>;

#ifdef TWIN
struct Pairs : Module {
  Linear<D, C> head;
  TESSERA_MEMBERS(Pairs, head)
  static constexpr Recipe recipe{};
  Tensor<B, C> forward(Tensor<B, D> x) const { return head(x); }
};
#else
struct Pairs : Module {
  Linear<D, C> head;
  TESSERA_MEMBERS(Pairs, head)
  static constexpr Recipe recipe{};
  Tensor<IMAGES, C> forward(Tensor<IMAGES, D> x) const { return head(x); }
};
#endif

inline auto g() { return trace<Pairs>("pairs"); }

}  // namespace tessera
