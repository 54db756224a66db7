// CLIP compares an image and texts in a space that they share.
// expect: einsum<b e, t e -> b t> at 8: e is E=512 of [TEXTS=10, E=512], but at 3 it is D=192 of [B, D=192] (D := H*K;
// did you mean a Linear<E, D> in between?) [einsum-letter]
#include "axes.hpp"

namespace tessera {

inline constexpr auto E = axis<"E", 512>;
inline constexpr auto TEXTS = axis<"TEXTS", 10>;

#ifdef TWIN
inline auto f(const Linear<E, D>& project, Tensor<B, D> image, Tensor<TEXTS, E> texts) {
  return einsum<"b e, t e -> b t">(image, project(texts));
}
#else
inline auto f(Tensor<B, D> image, Tensor<TEXTS, E> texts) { return einsum<"b e, t e -> b t">(image, texts); }
#endif

}  // namespace tessera
