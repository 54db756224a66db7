// What Vision Transformers are put together from: sizes, and the parts of a block. A Vit (vit.hpp) takes any block that
// is a template of a VitAxes; those here are ViT's and its published variants', and a new paper's is a struct beside
// its model.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// Pixels down and across; one number is a square.
struct Extent {
  std::int64_t height, width;

  constexpr Extent(std::int64_t side = 1) : height(side), width(side) {}
  constexpr Extent(std::int64_t down, std::int64_t across) : height(down), width(across) {}
};

/// How a token knows where it stands.
enum class Positions : std::uint8_t {
  learned,         ///< key pos_embed
  sinusoidal,      ///< a fixed table over the tokens in their order: Vaswani et al. 2017, section 3.5
  grid,            ///< a fixed table over rows and columns, which only patches have: Chen, Xie, He 2021 (MoCo v3)
  grid_inclusive,  ///< the same with the rates of Beyer et al. 2022
  none,            ///< or only what its blocks know of it
};

/// Where the two layer norms of a block stand.
enum class Norms : std::uint8_t {
  before,  ///< x + f(norm(x)): Dosovitskiy et al. 2021
  after,   ///< x + norm(f(x)): Swin v2; timm's ResPostBlock
  on_sum,  ///< norm(x + f(x)): Vaswani et al. 2017
};

/// Between the two layers of an MLP.
enum class Activation : std::uint8_t {
  gelu,       ///< with the exact error function
  gelu_tanh,  ///< GELU's approximation by tanh
  quick_gelu,
  relu,
  silu,
  swiglu,  ///< silu(a) * b of two maps a and b: Shazeer 2020. Packed as timm's SwiGLUPacked: fc1 makes both, a first
};

/// How tokens become one vector.
enum class Pooling : std::uint8_t {
  class_token,           ///< its row
  mean,                  ///< the mean of the patches; class token and registers do not count
  class_token_and_mean,  ///< one behind the other, twice as wide as a token: DINOv2's linear classifiers
  attention,             ///< a learned query looks at the patches (MAP): Lee et al. 2019, Zhai et al. 2022
  attention_to_all,      ///< and at the tokens before them
};

/// Where the last layer norm stands.
enum class FinalNorm : std::uint8_t {
  before_pooling,  ///< over all tokens, key norm
  after_pooling,   ///< over the pooled vector, key fc_norm
  none,
};

/// What makes tokens of patches.
enum class Stem : std::uint8_t {
  plain,        ///< a map with a bias
  normed,       ///< and a norm of each patch, key patch_embed.norm: AIMv2
  norm_of_all,  ///< a map without a bias, and a norm of all tokens with their positions, key norm_pre: CLIP
};

/// Of a norm.
enum class Normalization : std::uint8_t {
  layer,
  rms,  ///< without mean and bias: Zhang, Sennrich 2019
};

/// What a model without classes gives.
enum class Features : std::uint8_t {
  pooled,  ///< [B, D]
  tokens,  ///< [B, T, D], after the last norm
  both,    ///< [B, 1+T, D], the pooled one first
};

/// Some of a model's blocks, by their numbers from 0 to 63; what they are in their order.
struct Layers {
  std::uint64_t set = 0;

  constexpr Layers() = default;
  constexpr Layers(std::initializer_list<int> numbers) {
    for (const int number : numbers) set |= std::uint64_t{1} << number;
  }

  constexpr int count() const { return std::popcount(set); }
  constexpr bool has(int number) const { return set >> number & 1; }
  constexpr int last() const { return std::bit_width(set) - 1; }
  /// How many blocks there are from the i-th of these on to the one behind it; before the first, all that lead to it.
  constexpr int blocks(int i) const {
    std::uint64_t rest = set;
    int before = -1;
    for (; i > 0; --i, rest &= rest - 1) before = std::countr_zero(rest);
    return std::countr_zero(rest) - before;
  }
};

/// What can differ from one ViT to another. The defaults are those of ViT-Ti/16.
struct VitSpec {
  Extent image = 224;
  Extent patch = 16;  ///< has to divide image, less the rest
  std::int64_t channels = 3;
  std::int64_t width = 192;     ///< of a token
  std::int64_t heads = 3;       ///< has to divide width, where head is 0
  std::int64_t head = 0;        ///< width of a head; 0: that of a token over the number of heads
  int depth = 12;               ///< blocks
  std::int64_t mlp = 4;         ///< the MLP's hidden layer is this many times as wide as a token
  std::int64_t classes = 1000;  ///< 0: the model gives features and has no head

  Extent rest = 0;  ///< pixels below and right of the last patches, which none sees: timm's patches of 14 in 384
  std::int64_t hidden = 0;  ///< width of the MLP's hidden layer, where it is no multiple of width: then mlp has no say
  bool class_token = true;
  bool distilled =
      false;  ///< a second token and head, whose logits are averaged with the first's (DeiT): dist_token, head_dist
  Stem stem = Stem::plain;
  std::int64_t registers = 0;  ///< further learned tokens, between class token and patches: Darcet et al. 2024
  Positions positions = Positions::learned;
  bool patch_positions = false;  ///< only patches have positions, not the tokens before them (timm's no_embed_class)
  Normalization norm = Normalization::layer;
  Norms norms = Norms::before;
  bool qkv_bias = true;
  bool qk_norm = false;    ///< layer norms of each head's queries and keys: Dehghani et al. 2023
  double layer_scale = 0;  ///< start of the factors on each branch (Touvron et al. 2021, CaiT); 0: there are none
  Activation activation = Activation::gelu;
  FinalNorm final_norm = FinalNorm::before_pooling;
  Pooling pooling = Pooling::class_token;
  std::int64_t pooling_heads = 0;   ///< of Pooling::attention; 0: as many as a block has
  std::int64_t pooling_hidden = 0;  ///< of the MLP of Pooling::attention; 0: that of a block
  Features features = Features::pooled;
  Layers layers = {};  ///< the model gives [B, L, T, D], what these L blocks give, each behind the last norm (DINOv2)
  std::int64_t representation = 0;  ///< width of a layer with tanh before the head; 0: there is none
  double epsilon = 1e-6;            ///< of the norms

  // What training leaves out at random; evaluation leaves out nothing.
  double dropout = 0;            ///< of tokens with their positions, of what attention and both layers of the MLP give
  double attention_dropout = 0;  ///< of attention's probabilities
  double drop_path = 0;          ///< of whole branches, the same share in each block: all blocks are one declaration
};

namespace detail {

/// What patches cover, and the rest that they do not.
template <std::int64_t rest, class Covered>
constexpr auto with_rest(Covered covered) {
  if constexpr (rest == 0)
    return covered;
  else
    return covered + Constant<rest>{};
}

}  // namespace detail

/// The axes of a ViT, for its parts.
template <VitSpec S>
struct VitAxes {
  static constexpr VitSpec spec = S;

  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto C = axis<"C", S.channels>;
  static constexpr auto P = axis<"P", S.patch.height>;  // a patch is P x Q pixels, and Q is P where it is square
  static constexpr auto Q = [] {
    if constexpr (S.patch.height == S.patch.width)
      return P;
    else
      return axis<"Q", S.patch.width>;
  }();
  static constexpr auto GH = axis<"GH", Constant<S.image.height - S.rest.height>{} / P>;  // patches down
  static constexpr auto GW = axis<"GW", Constant<S.image.width - S.rest.width>{} / Q>;    // patches across
  static constexpr auto IH = axis<"IH", detail::with_rest<S.rest.height>(GH* P)>;         // image height
  static constexpr auto IW = axis<"IW", detail::with_rest<S.rest.width>(GW* Q)>;          // image width
  static constexpr auto N = axis<"N", GH * GW>;                                           // patches
  static constexpr auto R = [] {                                                          // registers
    if constexpr (S.registers == 0)
      return 0_c;
    else
      return axis<"R", S.registers>;
  }();
  static constexpr auto FRONT = Constant<S.class_token + S.distilled>{} + R;  // tokens before the patches
  static constexpr auto T = FRONT + N;                                        // tokens
  static constexpr auto H = axis<"H", S.heads>;                               // heads
  static constexpr auto K = [] {                                              // width of a head
    if constexpr (S.head == 0)
      return axis<"K", Constant<S.width>{} / H>;
    else
      return axis<"K", S.head>;
  }();
  static constexpr auto D = [] {  // width of a token
    if constexpr (S.head == 0)
      return axis<"D", H * K>;
    else
      return axis<"D", S.width>;
  }();
  static constexpr auto A = [] {  // width of all heads
    if constexpr (S.head == 0)
      return D;
    else
      return axis<"A", H * K>;
  }();
  static constexpr auto M = [] {  // width of the MLP's hidden layer
    if constexpr (S.hidden == 0)
      return axis<"M", Constant<S.mlp>{} * D>;
    else
      return axis<"M", S.hidden>;
  }();

  using Tokens = Tensor<B, T, D>;
  using Heads = Tensor<B, H, T, K>;  ///< queries, keys or values

  template <auto... Ds>
  using Norm = std::conditional_t<S.norm == Normalization::rms, RmsNorm<Ds...>, LayerNorm<Ds...>>;
};

// ---- Queries, keys and values: a part that gives the three ----

/// One map makes all three.
template <class V>
struct FusedQkv : Part {
  std::conditional_t<V::spec.qkv_bias, Linear<V::D, 3_c * V::A>, LinearWithoutBias<V::D, 3_c * V::A>> qkv;
  TESSERA_MEMBERS(FusedQkv, qkv)

  auto forward(typename V::Tokens x) const {
    return unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv(x), "h"_is(V::H), "k"_is(V::K)), 3_c);
  }
};

/// One map, and a bias of queries and one of values: Bao et al. 2022 (BEiT). One bias is made of them, which inference
/// folds, so that the map adds it where it stores.
template <class V>
struct QvBias : Part {
  LinearWithoutBias<V::D, 3_c * V::A> qkv;
  Parameter<V::A> q_bias, v_bias;
  TESSERA_MEMBERS(QvBias, qkv, q_bias, v_bias)

  auto forward(typename V::Tokens x) const {
    const auto bias = concat<0>(q_bias, v_bias * 0, v_bias);
    return unstack<0>(rearrange<"b n (s h k) -> s b h n k">(qkv(x) + bias, "h"_is(V::H), "k"_is(V::K)), 3_c);
  }
};

/// Three maps, keys without a bias: Fang et al. 2023 (EVA-02).
template <class V, class Keys = LinearWithoutBias<V::D, V::A>>
struct SeparateQkv : Part {
  Linear<V::D, V::A> q_proj;
  Keys k_proj;
  Linear<V::D, V::A> v_proj;
  TESSERA_MEMBERS(SeparateQkv, q_proj, k_proj, v_proj)

  auto forward(typename V::Tokens x) const {
    const auto heads = [](const Tensor<V::B, V::T, V::A>& y) ->
        typename V::Heads { return rearrange<"b n (h k) -> b h n k">(y, "h"_is(V::H), "k"_is(V::K)); };
    return std::array{heads(q_proj(x)), heads(k_proj(x)), heads(v_proj(x))};
  }
};

/// Three maps, and a head of keys and values for each of some groups of heads of queries: Ainslie et al. 2023 (GQA).
template <class V, std::int64_t groups>
struct GroupedQkv : Part {
  static constexpr auto G = axis<"G", groups>;                         // has to divide the heads
  static constexpr auto E = axis<"E", Constant<V::spec.heads>{} / G>;  // heads of queries in a group
  static constexpr auto AG = axis<"AG", G * V::K>;                     // width of all heads of keys
  Linear<V::D, V::A> q_proj;
  Linear<V::D, AG> k_proj, v_proj;
  TESSERA_MEMBERS(GroupedQkv, q_proj, k_proj, v_proj)

  auto forward(typename V::Tokens x) const {
    const typename V::Heads q = rearrange<"b n (h k) -> b h n k">(q_proj(x), "h"_is(V::H), "k"_is(V::K));
    return std::array{q, shared(k_proj(x)), shared(v_proj(x))};
  }

 private:
  /// The head of each group, once for every head of queries.
  static typename V::Heads shared(const Tensor<V::B, V::T, AG>& y) {
    return rename<1>(repeat<"b n (g k) -> b (g e) n k">(y, "g"_is(G), "k"_is(V::K), "e"_is(E)), V::H);
  }
};

// ---- What attention knows of positions: a part that is called with queries and with keys, and adds to scores ----

/// Nothing.
template <class V>
struct Unplaced : Part {
  TESSERA_MEMBERS(Unplaced)

  template <class X>
  X forward(const X& x) const {
    return x;
  }
  template <class X>
  X biased(const X& scores) const {
    return scores;
  }
};

/// Rotary positions.
template <class V, Rope R>
struct Rotary : Unplaced<V> {
  TESSERA_MEMBERS(Rotary)

  typename V::Heads forward(typename V::Heads x) const { return rope<R, V::GH, V::GW>(x); }
};

/// A bias for each way that two patches stand to each other, a table a block: Bao et al. 2022 (BEiT).
template <class V>
struct RelativeTable : Unplaced<V> {
  using Scores = Tensor<V::B, V::H, V::T, V::T>;

  static constexpr std::int64_t rows =
      (2 * V::GH.value.value() - 1) * (2 * V::GW.value.value() - 1) + 3 * V::FRONT.value.value();
  Parameter<axis<"W", rows>, V::H> relative_position_bias_table;
  TESSERA_MEMBERS(RelativeTable, relative_position_bias_table)

  Scores biased(const Scores& scores) const {
    return scores + relative_position_bias<V::GH, V::GW, V::FRONT>(relative_position_bias_table);
  }
};

/// An MLP makes the bias of how far patches are from each other: Liu et al. 2022 (Swin v2), timm's RelPosMlp.
template <class V, std::int64_t hidden>
struct RelativeMlp : Module {
  struct Mlp : Module {
    static constexpr auto U = axis<"U", hidden>;
    Linear<2_c, U> fc1;
    Linear<U, V::H> fc2;
    TESSERA_MEMBERS(Mlp, fc1, fc2)

    template <class X>
    auto forward(const X& x) const {
      return fc2(relu(fc1(x)));
    }
  };

  Mlp mlp;
  TESSERA_MEMBERS(RelativeMlp, mlp)

  Tensor<V::H, V::T, V::T> forward() const {
    return relative_position_bias<V::GH, V::GW, V::FRONT>(mlp(relative_log_positions<V::GH, V::GW>()));
  }
};

/// That of each block.
template <class V, std::int64_t hidden = 128>
struct RelativeMlpOfBlock : Unplaced<V> {
  using Scores = Tensor<V::B, V::H, V::T, V::T>;

  RelativeMlp<V, hidden> rel_pos;
  TESSERA_MEMBERS(RelativeMlpOfBlock, rel_pos)

  Scores biased(const Scores& scores) const { return scores + rel_pos(); }
};

// ---- Attention ----

namespace detail {

/// A part in the place of another among Attention's.
template <class V, class Qkv, class Places>
struct AttentionProblem {
  constexpr Text operator()() const {
    Text t;
    const auto put_suggestion = [&](std::string_view qkv, std::string_view places) {
      t.put("; did you mean Attention<V, ").put(qkv).put("<...>");
      if (!places.empty()) t.put(", ").put(places).put("<...>");
      t.put(">? [module-input]");
    };
    if constexpr (std::is_base_of_v<Unplaced<V>, Qkv>) {
      t.put("the second argument of Attention makes queries, keys and values, and ").put(Qkv::module_name);
      t.put(" places them");
      put_suggestion("FusedQkv", Qkv::module_name);
    } else if constexpr (!requires(const Places& p, const Tensor<V::B, V::H, V::T, V::T>& s) { p.biased(s); }) {
      t.put("the third argument of Attention places queries and keys, and ").put(Places::module_name).put(" does not");
      put_suggestion(Places::module_name, "");
    }
    return t;
  }
};

/// A part in the place of what stands beside a block's input.
template <class Branch>
struct BranchProblem {
  constexpr Text operator()() const {
    Text t;
    t.put("VitBlock takes an attention and an MLP, and ").put(Branch::module_name);
    t.put(" gives several tensors; did you mean Attention<V, ").put(Branch::module_name);
    return t.put("<...>>? [module-input]");
  }
};

}  // namespace detail

/// What leaves attention is normed before it is mapped: Fang et al. 2023 (EVA-02), sub-LN.
template <class V>
struct NormedProjection : Part {
  typename V::template Norm<V::A> norm{V::spec.epsilon};
  Linear<V::A, V::D> proj;
  TESSERA_MEMBERS(NormedProjection, norm, proj)

  auto forward(Tensor<V::B, V::T, V::A> x) const { return proj(norm(x)); }
};

/// Multi-head self-attention: Vaswani et al. 2017. Softmax rows are its attention maps.
template <class V, class Qkv = FusedQkv<V>, class Places = Unplaced<V>, class Projection = Linear<V::A, V::D>>
struct Attention : Module {
  static constexpr VitSpec S = V::spec;

  Qkv parts;
  If<S.qk_norm, typename V::template Norm<V::K>> q_norm{S.epsilon}, k_norm{S.epsilon};
  Places places;
  Projection proj;
  TESSERA_MEMBERS(Attention, parts, q_norm, k_norm, places, proj)

  typename V::Tokens forward(typename V::Tokens x) const {
    using Problem = detail::AttentionProblem<V, Qkv, Places>;
    if constexpr (!fits<Problem>) {
      return Refusal<Problem>::poison();
    } else {
      const auto [q, k, v] = parts(x);
      const typename V::Heads queries = q_norm(q);
      const typename V::Heads keys = k_norm(k);
      const Tensor<V::B, V::H, V::T, V::T> scores =
          einsum<"b h i k, b h j k -> b h i j">(places(queries), places(keys)) / sqrt(V::K);
      const auto probabilities = dropout<S.attention_dropout>(softmax<-1>(places.biased(scores)));
      const auto mixed = einsum<"b h i j, b h j k -> b h i k">(probabilities, v);
      return dropout<S.dropout>(proj(rearrange<"b h n k -> b n (h k)">(mixed)));
    }
  }
};

// ---- MLP ----

template <Activation activation, class X>
auto activated(const X& x) {
  if constexpr (activation == Activation::gelu) {
    return gelu(x);
  } else if constexpr (activation == Activation::gelu_tanh) {
    return gelu_tanh(x);
  } else if constexpr (activation == Activation::quick_gelu) {
    return quick_gelu(x);
  } else if constexpr (activation == Activation::relu) {
    return relu(x);
  } else if constexpr (activation == Activation::silu) {
    return silu(x);
  } else {
    const auto [gate, value] = chunk<-1>(x, 2_c);
    return silu(gate) * value;
  }
}

/// Two layers, and a norm between them or none (BEiT-3); of a gated activation the first makes both its maps. As in
/// timm's Mlp and GluMlp.
template <class V, class Norm = Identity, DimExpression auto M = V::M>
struct Mlp : Module {
  static constexpr VitSpec S = V::spec;
  static constexpr bool gated = S.activation == Activation::swiglu;

  std::conditional_t<gated, Linear<V::D, 2_c * M>, Linear<V::D, M>> fc1;
  Norm norm{S.epsilon};
  Linear<M, V::D> fc2;
  TESSERA_MEMBERS(Mlp, fc1, norm, fc2)

  template <class X>
  auto forward(const X& x) const {
    using Hidden = TensorOf<replace_axis<typename X::dims, X::shape.rank - 1, std::remove_cv_t<decltype(M)>>>;
    const auto inner = activated<S.activation>(fc1(x));
    if constexpr (poisoned<std::remove_cv_t<decltype(inner)>>) {
      return inner;  // and not a Hidden, which other widths would be refused by once more
    } else {
      const Hidden hidden = inner;
      return dropout<S.dropout>(fc2(norm(dropout<S.dropout>(hidden))));
    }
  }
};

/// silu(a) * b of two maps a and b of their own, then a norm or none: timm's SwiGLU. Shazeer 2020, Fang et al. 2023.
template <class V, class Norm = Identity, class In = Linear<V::D, V::M>, class Out = Linear<V::M, V::D>>
struct SwiGlu : Module {
  static constexpr VitSpec S = V::spec;

  In fc1_g, fc1_x;
  Norm norm{S.epsilon};
  Out fc2;
  TESSERA_MEMBERS(SwiGlu, fc1_g, fc1_x, norm, fc2)

  typename V::Tokens forward(typename V::Tokens x) const {
    const auto inner = norm(dropout<S.dropout>(silu(fc1_g(x)) * fc1_x(x)));
    return dropout<S.dropout>(fc2(inner));
  }
};

// ---- Blocks ----

/// A factor for each of a token's numbers.
template <class V>
struct LayerScale : Module {
  Parameter<V::D> gamma{constant(V::spec.layer_scale)};
  TESSERA_MEMBERS(LayerScale, gamma)

  typename V::Tokens forward(typename V::Tokens x) const { return x * gamma; }
};

/// ViT's block: attention and MLP, each a branch beside its input.
template <class V, class Attn = Attention<V>, class Feed = Mlp<V>>
struct VitBlock : Module {
  static constexpr VitSpec S = V::spec;
  using Tokens = typename V::Tokens;
  using Norm = typename V::template Norm<V::D>;
  using Scale = If<S.layer_scale != 0, LayerScale<V>>;

  Norm norm1{S.epsilon};
  Attn attn;
  Scale ls1;
  Norm norm2{S.epsilon};
  Feed mlp;
  Scale ls2;
  TESSERA_MEMBERS(VitBlock, norm1, attn, ls1, norm2, mlp, ls2)

  Tokens forward(Tokens x) const {
    const Tokens y = with_branch(x, norm1, attn, ls1);
    return with_branch(y, norm2, mlp, ls2);
  }

 private:
  template <class Branch>
  static Tokens with_branch(const Tokens& x, const Norm& norm, const Branch& f, const Scale& scale) {
    if constexpr (!AnyTensor<decltype(f(x))>)
      return Refusal<detail::BranchProblem<Branch>>::poison();
    else if constexpr (S.norms == Norms::before)
      return x + drop_path<S.drop_path>(scale(f(norm(x))));
    else if constexpr (S.norms == Norms::after)
      return x + drop_path<S.drop_path>(scale(norm(f(x))));
    else
      return norm(x + drop_path<S.drop_path>(scale(f(x))));
  }
};

/// A query that is learned looks at tokens, then an MLP beside it (MAP): Lee et al. 2019, Zhai et al. 2022; timm's
/// AttentionPoolLatent.
template <class V>
struct AttentionPool : Module {
  static constexpr VitSpec S = V::spec;
  static constexpr std::int64_t heads = S.pooling_heads ? S.pooling_heads : S.heads;
  static constexpr auto H = axis<"PH", heads>;
  static constexpr auto K = axis<"PK", Constant<S.width>{} / H>;
  static constexpr auto A = axis<"PA", H * K>;
  static constexpr auto M = [] {
    if constexpr (S.pooling_hidden == 0)
      return V::M;
    else
      return axis<"PM", S.pooling_hidden>;
  }();

  Parameter<1_c, 1_c, V::D> latent{normal(0, 0.02)};
  Linear<V::D, A> q;
  Linear<V::D, 2_c * A> kv;
  Linear<A, V::D> proj;
  typename V::template Norm<V::D> norm{S.epsilon};
  Mlp<V, Identity, M> mlp;
  TESSERA_MEMBERS(AttentionPool, latent, q, kv, proj, norm, mlp)

  template <class X>
  Tensor<V::B, V::D> forward(const X& tokens) const {
    const auto query = rearrange<"1 1 (h k) -> h k">(q(latent), "h"_is(H), "k"_is(K));
    const auto [keys, values] =
        unstack<0>(rearrange<"b n (s h k) -> s b h n k">(kv(tokens), "h"_is(H), "k"_is(K)), 2_c);
    const auto probabilities = softmax<-1>(einsum<"h k, b h j k -> b h j">(query, keys) / sqrt(K));
    const auto mixed = einsum<"b h j, b h j k -> b h k">(probabilities, values);
    const Tensor<V::B, V::D> pooled = proj(rearrange<"b h k -> b (h k)">(mixed));
    return pooled + mlp(norm(pooled));
  }
};

}  // namespace tessera::models
