// One mistake in the innermost operation is one error, however much follows.
// expect: rearrange<b n (h k) -> b h n k> at 6: WIDTH=192 / H=3 is exact in numbers only: H is no factor of WIDTH
// (WIDTH := EACH*HEADS); divide by a factor of it, or declare the quotient as an axis of its own, Q = axis<Q, 64>, and
// define WIDTH as the product, the outer one first: H * Q or Q * H [dim-factor]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

inline constexpr auto HEADS = axis<"HEADS", 6>;
inline constexpr auto EACH = axis<"EACH", 192_c / HEADS>;
inline constexpr auto WIDTH = axis<"WIDTH", HEADS * EACH>;

struct Attention : Module {
  Linear<WIDTH, 3_c * WIDTH> qkv;
  Linear<WIDTH, WIDTH> proj;
  TESSERA_MEMBERS(Attention, qkv, proj)

  Tensor<B, N + 1_c, WIDTH> forward(Tensor<B, N + 1_c, WIDTH> x) const {
    const auto parts = chunk<2>(qkv(x), 3_c);
#ifdef TWIN
    const auto q = rearrange<"b n (h k) -> b h n k">(parts[0], "h"_is(HEADS));
#else
    const auto q = rearrange<"b n (h k) -> b h n k">(parts[0], "h"_is(H));
#endif
    const auto k = rearrange<"b n (h k) -> b h n k">(parts[1], "h"_is(HEADS));
    const auto v = rearrange<"b n (h k) -> b h n k">(parts[2], "h"_is(HEADS));
    const auto scores = softmax<-1>(einsum<"b h i k, b h j k -> b h i j">(q, k) / sqrt(EACH));
    return proj(rearrange<"b h n k -> b n (h k)">(einsum<"b h i j, b h j k -> b h i k">(scores, v)));
  }
};

struct Block : Module {
  LayerNorm<WIDTH> norm1;
  Attention attn;
  LayerNorm<WIDTH> norm2;
  Sequential<Linear<WIDTH, 4_c * WIDTH>, Gelu, Linear<4_c * WIDTH, WIDTH>> mlp;
  TESSERA_MEMBERS(Block, norm1, attn, norm2, mlp)

  Tensor<B, N + 1_c, WIDTH> forward(Tensor<B, N + 1_c, WIDTH> x) const {
    const auto y = x + attn(norm1(x));
    return y + mlp(norm2(y));
  }
};

struct Vit : Module {
  Linear<C * P * P, WIDTH> embed;
  Parameter<1_c, WIDTH> token;
  Stack<Block, 12> blocks;
  Sequential<LayerNorm<WIDTH>, Linear<WIDTH, C>> head;
  TESSERA_MEMBERS(Vit, embed, token, blocks, head)
  static constexpr Recipe recipe{};

  Tensor<B, C> forward(Tensor<B, C, IH, IW> images) const {
    const auto patches = rearrange<"b c (gh p) (gw q) -> b (gh gw) (c p q)">(images, "p"_is(P), "q"_is(P));
    const auto tokens =
        concat<1>(repeat<"n d -> b n d">(token, "b"_is(B)), embed(patches)) + sinusoidal<N + 1_c, WIDTH>();
    return head(take<1>(blocks(tokens), 0_c));
  }
};

inline auto g() { return trace<Vit>("vit"); }

}  // namespace tessera
