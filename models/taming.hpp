// taming: the transformer of Esser, Rombach, Ommer 2021 (Taming Transformers, section 3.2) over the tokens of an image:
// GPT-2's architecture after minGPT, with the keys of published checkpoints.
#pragma once

#include <cstdint>

#include "dsl/tessera.hpp"

namespace tessera::models {

/// What can differ from one Gpt to another. The defaults are those of 16x16 tokens of 1024 codes.
struct GptSpec {
  std::int64_t codes = 1024;      ///< a token is one of so many: rows of the table
  std::int64_t positions = 256;   ///< tokens that are read; a Gpt of one has no NAME_step
  std::int64_t layers = 24;       ///< blocks
  std::int64_t heads = 16;        ///< has to divide width
  std::int64_t width = 1024;      ///< of a token
  std::int64_t classes = 0;       ///< the first token that is read is the class, row c of the table; 0: it is `start`
  std::int64_t start = 0;         ///< the first token of a model without classes
  double dropout = 0;             ///< of embeddings, attention's probabilities and what both branches give
  double learning_rate = 4.5e-6;  ///< of AdamW
};

/// What is wrong with what a Gpt reads first.
template <GptSpec S>
struct GptProblem {
  constexpr Text operator()() const {
    Text t;
    if (S.classes < 0 || S.classes > S.codes)
      t.put("a Gpt of ").put(S.classes).put(" classes and ").put(S.codes);
    else if (S.start < 0 || S.start >= S.codes)
      t.put("a Gpt that starts with token ").put(S.start).put(" of ").put(S.codes);
    if (t.size) t.put(" codes: what is read first is a row of the table of codes [gpt-start]");
    return t;
  }
};

/// Tokens [B, T], the class or the start token and all of an image's tokens but the last, to the logits of all of its
/// tokens, [B, T, V]: trained by the cross entropy with these, labels [B, T]. Pre-norm with epsilon 1e-5, GELU with the
/// exact error function, causal attention, a head without a bias that is not the table. Weight decay applies to the
/// weights of linear maps alone. Starting values are the published ones. Sentence: [gpt-start].
template <GptSpec S>
struct Gpt : Module {
  static constexpr auto B = axis<"B">;  // the batch, known when the program runs
  static constexpr auto V = axis<"V", S.codes>;
  static constexpr auto T = axis<"T", S.positions>;
  static constexpr auto J = axis<"J", T>;  // the position that is looked at
  static constexpr auto H = axis<"H", S.heads>;
  static constexpr auto K = axis<"K", Constant<S.width>{} / H>;  // width of a head
  static constexpr auto D = axis<"D", H * K>;
  static constexpr auto M = axis<"M", 4_c * D>;  // width of the MLP's hidden layer
  using Tokens = Tensor<B, T, D>;

  /// A Linear with the published start.
  template <DimExpression auto In, DimExpression auto Out>
  struct Map : Linear<In, Out> {
    Map() {
      this->weight.start = with_decay(normal(0, 0.02));
      this->bias.start = constant(0);
    }
  };

  struct Attention : Module {
    Map<D, D> key, query, value, proj;
    TESSERA_MEMBERS(Attention, key, query, value, proj)

    Tokens forward(Tokens x) const {
      const auto heads = [](const Tokens& y) { return rearrange<"b t (h k) -> b h t k">(y, "h"_is(H), "k"_is(K)); };
      const auto keys = rename<2>(heads(key(x)), J), values = rename<2>(heads(value(x)), J);
      const auto scores = einsum<"b h i k, b h j k -> b h i j">(heads(query(x)), keys) / sqrt(K);
      const auto seen = dropout<S.dropout>(softmax<-1>(mask_scores(scores, causal_mask<T, J>())));
      const auto mixed = einsum<"b h i j, b h j k -> b h i k">(seen, values);
      return dropout<S.dropout>(proj(rearrange<"b h t k -> b t (h k)">(mixed)));
    }
  };

  struct Block : Module {
    LayerNorm<D> ln1{1e-5};
    Attention attn;
    LayerNorm<D> ln2{1e-5};
    Sequential<Map<D, M>, Gelu, Map<M, D>> mlp;
    TESSERA_MEMBERS(Block, ln1, attn, ln2, mlp)

    Tokens forward(Tokens x) const {
      const Tokens y = x + attn(ln1(x));
      return y + dropout<S.dropout>(mlp(ln2(y)));
    }
  };

  Embedding<V, D> tok_emb;
  Parameter<1_c, T, D> pos_emb{constant(0)};
  Stack<Block, S.layers> blocks;
  LayerNorm<D> ln_f{1e-5};
  LinearWithoutBias<D, V> head;
  TESSERA_MEMBERS(Gpt, tok_emb, pos_emb, blocks, ln_f, head)

  Gpt() {
    if constexpr (!fits<GptProblem<S>>) Refusal<GptProblem<S>>::poison();
    tok_emb.weight.start = normal(0, 0.02);
    head.weight.start = with_decay(normal(0, 0.02));
  }

  static constexpr Recipe recipe{
      .optimizer = {.kind = Optimizer::adamw, .learning_rate = S.learning_rate, .beta2 = 0.95, .weight_decay = 0.01},
      .batch = 64};

  Tensor<B, T, V> forward(Integers<B, T> tokens) const {
    const Tokens x = dropout<S.dropout>(tok_emb(tokens) + take<0>(pos_emb, 0_c));
    return head(ln_f(blocks(x)));
  }
};

}  // namespace tessera::models
