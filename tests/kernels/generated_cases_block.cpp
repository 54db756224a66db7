// Models of several ops: what transformers are made of, repeated layers, and one block at many sizes.
#include <algorithm>

#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

using graph::NodeId;
using graph::Op;

namespace {

constexpr int b = 'b', i = 'i', j = 'j', k = 'k';

/// x W + bias over the last axis.
NodeId linear(Sketch& s, NodeId x, const std::string& path, const Dim& to) {
  const NodeId weight = s.parameter(path + ".weight", {to, s.b.shape(x).back()}, -0.5, 0.5);
  const NodeId bias = s.parameter(path + ".bias", {to}, -0.5, 0.5);
  const NodeId product = s.b.einsum({x, weight}, {{b, i, j}, {k, j}, {b, i, k}});
  return s.b.add(product, s.b.broadcast(bias, s.b.shape(product), {2}));
}

NodeId norm(Sketch& s, NodeId x, const std::string& path) {
  const Dim last = s.b.shape(x).back();
  const NodeId weight = s.parameter(path + ".weight", {last}, 0.5, 1.5), bias = s.parameter(path + ".bias", {last});
  return s.b.layer_norm(x, weight, bias, {2}, 1e-5);
}

/// x + linear(gelu(linear(x))).
NodeId mlp(Sketch& s, NodeId x, const std::string& path) {
  const NodeId hidden = s.b.unary(Op::gelu, linear(s, x, path + ".0", s.J + s.K));
  return s.b.add(x, linear(s, hidden, path + ".1", s.J));
}

/// softmax(q k / 1.7) v.
NodeId attention(Sketch& s, NodeId q, NodeId key, NodeId v) {
  const NodeId scores = s.b.divide(s.b.einsum({q, key}, {{b, i, k}, {b, j, k}, {b, i, j}}), s.b.constant(1.7));
  return s.b.einsum({s.b.softmax(scores, 2), v}, {{b, i, j}, {b, j, k}, {b, i, k}});
}

/// Each of two heads sees its own slice of the token.
NodeId sliced_attention(Sketch& s, NodeId x, const std::string& path) {
  const Dim first = Dim::constant(s.J.value() / 2), second = s.J - first;
  std::vector<NodeId> heads;
  for (const auto& [name, offset, width] : {std::tuple(".a", std::int64_t{0}, first), {".b", first.value(), second}}) {
    const NodeId head = s.b.slice(x, 2, offset, width);
    const NodeId q = linear(s, head, path + name + ".q", width), key = linear(s, head, path + name + ".k", width);
    heads.push_back(attention(s, q, key, linear(s, head, path + name + ".v", width)));
  }
  return s.b.concat(heads, 2, s.J);
}

/// x + dropped path of dropped MLP, as layers of a stack see it: other factors in every layer.
NodeId dropped_mlp(Sketch& s, NodeId x, const std::string& path) {
  const NodeId hidden = s.b.dropout(s.b.unary(Op::gelu, linear(s, x, path + ".0", s.J + s.K)), 0.25, {0, 1, 2});
  return s.b.add(x, s.b.dropout(linear(s, hidden, path + ".1", s.J), 0.5, {0}));
}

/// One layer of a transformer.
NodeId block(Sketch& s, NodeId x, const std::string& path) {
  const NodeId y = s.b.add(x, sliced_attention(s, norm(s, x, path + ".norm1"), path + ".attn"));
  return mlp(s, norm(s, y, path + ".norm2"), path + ".mlp");
}

/// x + dropout(softmax(q k)) v: the gradient of a softmax is one of what has been dropped from.
NodeId dropped_attention(Sketch& s, NodeId x, const std::string& path) {
  const NodeId q = linear(s, x, path + ".q", s.J), k = linear(s, x, path + ".k", s.J),
               v = linear(s, x, path + ".v", s.J);
  const NodeId shares = s.b.softmax(s.b.einsum({q, k}, {{'b', 'i', 'j'}, {'b', 'k', 'j'}, {'b', 'i', 'k'}}), 2);
  const NodeId left = s.b.dropout(shares, 0.25, {0, 1, 2});
  return s.b.add(x, s.b.einsum({left, v}, {{'b', 'i', 'k'}, {'b', 'k', 'j'}, {'b', 'i', 'j'}}));
}

/// What becomes of attention's probabilities: some drop out, or those of later keys are 0, or of the first thousand; or
/// scores know a key's row and column.
enum class Probabilities { all, dropped, causal, of_late_keys, by_rows_and_columns };

/// Scores [B, heads, queries, keys], keys being rows of s.K, and what a query makes of a key's row and column.
NodeId by_rows_and_columns(Sketch& s, NodeId q, NodeId scores, const std::string& path) {
  const std::vector<Dim> shape = s.b.shape(scores);  // nodes move as others are recorded
  const Dim rows = Dim::constant(shape[3].value() / s.K.value());
  const std::vector<Dim> split{shape[0], shape[1], shape[2], rows, s.K};
  const auto of = [&](const std::string& which, const Dim& along, int other) {
    const NodeId table = s.parameter(path + which, {along, s.b.shape(q)[3]}, -0.3, 0.3);
    const NodeId made = s.b.einsum({q, table}, {{b, 'h', i, k}, {j, k}, {b, 'h', i, j}});
    return s.b.broadcast(made, split, {0, 1, 2, other});
  };
  const graph::Rearrangement apart{split, {{0}, {1}, {2}, {3, 4}}, {{0}, {1}, {2}, {3}, {4}}},
      together{split, {{0}, {1}, {2}, {3}, {4}}, {{0}, {1}, {2}, {3, 4}}};
  const NodeId away = s.b.add(of(".row", rows, 3), of(".column", s.K, 4));
  return s.b.rearrange(s.b.add(away, s.b.rearrange(scores, apart, split)), together, shape);
}

/// x + attention of so many heads, whose output is gelu'd.
NodeId heads_attention(Sketch& s, NodeId x, const std::string& path, int heads, Probabilities of, int queries = 0) {
  const Dim h = Dim::constant(heads), width = Dim::constant(17);
  const auto projected = [&](const std::string& which, NodeId from) {
    const NodeId weight = s.parameter(path + which, {h, width, s.J}, -0.3, 0.3);
    return s.b.einsum({from, weight}, {{b, i, j}, {'h', k, j}, {b, 'h', i, k}});
  };
  const NodeId asking = queries ? s.b.slice(x, 1, 0, Dim::constant(queries)) : x;
  const NodeId q = projected(".q", asking), key = projected(".k", x), v = projected(".v", x);
  NodeId scores = s.b.divide(s.b.einsum({q, key}, {{b, 'h', i, k}, {b, 'h', j, k}, {b, 'h', i, j}}), s.b.constant(1.7));
  if (of == Probabilities::causal) {
    const std::vector<Dim> pairs{s.I, s.I};
    const NodeId query = s.b.broadcast(s.b.arange(s.I), pairs, {0}), later = s.b.broadcast(s.b.arange(s.I), pairs, {1});
    const NodeId mask = s.b.broadcast(s.b.unary(Op::step, s.b.subtract(later, query)), s.b.shape(scores), {2, 3});
    scores = s.b.select(mask, s.b.constant(-3e38), scores);
  }
  if (of == Probabilities::of_late_keys) {
    std::vector<double> early(static_cast<std::size_t>(s.I.value()));
    std::fill_n(early.begin(), 1000, 1);
    const NodeId mask = s.b.broadcast(s.b.table(path + ".early", {s.I}, std::move(early)), s.b.shape(scores), {3});
    scores = s.b.select(mask, s.b.constant(-3e38), scores);
  }
  if (of == Probabilities::by_rows_and_columns) scores = by_rows_and_columns(s, q, scores, path);
  NodeId weights = s.b.softmax(scores, 3);
  if (of == Probabilities::dropped) weights = s.b.dropout(weights, 0.25, {0, 1, 2, 3});
  // Backward makes what it makes of the first operand first: the probabilities' gradient, or the values'.
  const NodeId mix = of == Probabilities::causal
                         ? s.b.einsum({v, weights}, {{b, 'h', j, k}, {b, 'h', i, j}, {b, i, 'h', k}})
                         : s.b.einsum({weights, v}, {{b, 'h', i, j}, {b, 'h', j, k}, {b, i, 'h', k}});
  const NodeId mixed = s.b.unary(Op::gelu, mix);
  const NodeId out = s.parameter(path + ".out", {s.J, h, width}, -0.3, 0.3);
  return s.b.add(asking, s.b.einsum({mixed, out}, {{b, i, 'h', k}, {j, 'h', k}, {b, i, j}}));
}

/// `count` layers of `layer` over x.
template <class Layer>
NodeId stack(Sketch& s, NodeId x, const std::string& name, int count, Layer layer) {
  s.b.begin_region(name, count);
  const NodeId carry = s.b.carry(x);
  return s.b.end_region({layer(s, carry, name + ".{}")})[0];
}

void layers(std::vector<GeneratedCase>& cases) {
  cases.push_back({"layer_with_epilogue", [](Sketch& s) { weighted_outputs(s, mlp(s, shifted_images(s), "mlp")); }});
  cases.push_back({"attention_of_two_slices",
                   [](Sketch& s) { weighted_outputs(s, sliced_attention(s, shifted_images(s), "attn")); }});
  cases.push_back(
      {"stack_of_two_layers", [](Sketch& s) { weighted_outputs(s, stack(s, shifted_images(s), "blocks", 2, mlp)); }});
  cases.push_back({"stack_of_layers_that_drop_out",
                   [](Sketch& s) { weighted_outputs(s, stack(s, shifted_images(s), "blocks", 3, dropped_mlp)); }});
  cases.push_back({"stack_of_attentions_that_drop_out", [](Sketch& s) {
                     weighted_outputs(s, stack(s, shifted_images(s), "blocks", 3, dropped_attention));
                   }});
  cases.push_back(
      {"stack_of_one_layer", [](Sketch& s) { weighted_outputs(s, stack(s, shifted_images(s), "blocks", 1, mlp)); }});
  cases.push_back({"stack_of_three_transformer_blocks",
                   [](Sketch& s) { weighted_outputs(s, stack(s, shifted_images(s), "blocks", 3, block)); }});
  cases.push_back({"stack_over_the_images_themselves", [](Sketch& s) {
                     const NodeId images = s.input("images", {s.B, s.I, s.J});
                     weighted_outputs(s, stack(s, images, "blocks", 2, mlp));
                   }});
  cases.push_back({"stacks_one_after_the_other", [](Sketch& s) {
                     const NodeId first = stack(s, shifted_images(s), "first", 2, mlp);
                     weighted_outputs(s, stack(s, s.b.unary(Op::tanh, first), "second", 3, mlp));
                   }});
  cases.push_back({"stack_that_shares_its_weights", [](Sketch& s) {
                     const NodeId x = shifted_images(s), weight = s.parameter("weight", {s.J, s.J}, -0.5, 0.5);
                     auto layer = [=](Sketch& t, NodeId carry, const std::string&) {
                       return t.b.unary(Op::tanh, t.b.einsum({carry, weight}, {{b, i, j}, {k, j}, {b, i, k}}));
                     };
                     weighted_outputs(s, stack(s, x, "blocks", 4, layer));
                   }});
  cases.push_back({"stack_that_reads_a_value_from_outside", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.unary(Op::exp, s.b.unary(Op::tanh, x));
                     auto layer = [=](Sketch& t, NodeId carry, const std::string& path) {
                       return t.b.multiply(linear(t, carry, path, t.J), y);
                     };
                     weighted_outputs(s, s.b.add(stack(s, x, "blocks", 3, layer), y));
                   }});
  cases.push_back({"difference_of_two_softmaxes", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.softmax(s.b.unary(Op::tanh, x), 2);
                     weighted_outputs(s, s.b.subtract(s.b.softmax(x, 2), s.b.multiply(y, s.b.constant(0.3))));
                   }});
  for (const int first : {1, 2, 3})
    cases.push_back({"stack_that_reads_what_" + std::to_string(first) + "_layers_left", [=](Sketch& s) {
                       const NodeId x = shifted_images(s), left = stack(s, x, "first", first, mlp);
                       auto layer = [=](Sketch& t, NodeId carry, const std::string& path) {
                         return t.b.multiply(linear(t, carry, path, t.J), left);
                       };
                       weighted_outputs(s, stack(s, s.b.unary(Op::tanh, x), "second", 3, layer));
                     }});
  cases.push_back({"stack_of_two_carries", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.unary(Op::tanh, x);
                     s.b.begin_region("blocks", 3);
                     const NodeId p = s.b.carry(x), q = s.b.carry(y);
                     const NodeId next = s.b.add(p, s.b.unary(Op::tanh, linear(s, q, "blocks.{}.fc", s.J)));
                     const std::vector<NodeId> out = s.b.end_region({q, next});
                     weighted_outputs(s, s.b.multiply(out[0], out[1]));
                   }});
}

/// One block at sizes that leave every kind of rest: no whole vector, exactly one, one and a lane, several and a rest.
void sizes(std::vector<GeneratedCase>& cases) {
  for (const auto& [rows, columns] :
       {std::pair(5, 3), {5, 16}, {5, 17}, {5, 33}, {50, 7}, {1, 7}, {1, 16}, {16, 8}, {17, 24}, {20, 34}})
    cases.push_back({"block_of_" + std::to_string(rows) + "_by_" + std::to_string(columns), [=](Sketch& s) {
                       s.I = Dim::axis("I", rows);
                       s.J = Dim::axis("J", columns);
                       weighted_outputs(s, block(s, shifted_images(s), "block"));
                     }});
  // Tokens of one number: no slices to give to heads.
  for (int rows : {1, 5, 33})
    cases.push_back({"mlp_of_" + std::to_string(rows) + "_by_1", [=](Sketch& s) {
                       s.I = Dim::axis("I", rows);
                       s.J = Dim::axis("J", 1);
                       const NodeId x = shifted_images(s), y = mlp(s, x, "mlp");
                       weighted_outputs(s, s.b.softmax(s.b.add(y, norm(s, x, "norm")), 1));
                     }});
}

/// Large enough to be matrix products in panels: with a rest of rows and of columns, in layers, dropping out, and over
/// axes that run on into each other.
void products(std::vector<GeneratedCase>& cases) {
  const auto wide = [](Sketch& s) {
    s.I = Dim::axis("I", 19);
    s.J = Dim::axis("J", 36);
  };
  cases.push_back({"wide_layers_that_drop_out", [=](Sketch& s) {
                     wide(s);
                     weighted_outputs(s, stack(s, shifted_images(s), "blocks", 2, dropped_mlp));
                   }});
  cases.push_back({"wide_layers_that_read_constants", [=](Sketch& s) {  // of parameters alone: of all, of each
                     wide(s);
                     const NodeId shared = s.b.softmax(s.parameter("shared", {s.I, s.J}), 1);
                     auto layer = [=](Sketch& t, NodeId x, const std::string& path) {
                       const NodeId rows = t.parameter(path + ".rows", {t.I, t.J}),
                                    weight = t.parameter(path + ".weight", {t.J, t.J}, -0.3, 0.3);
                       const NodeId product = t.b.einsum({rows, weight}, {{i, j}, {k, j}, {i, k}});
                       const NodeId constant = t.b.add(t.b.softmax(product, 1), shared);
                       return t.b.multiply(linear(t, x, path + ".fc", t.J),
                                           t.b.broadcast(constant, t.b.shape(x), {1, 2}));
                     };
                     weighted_outputs(s, stack(s, shifted_images(s), "blocks", 3, layer));
                   }});
  cases.push_back({"wide_stack_that_shares_its_weights", [=](Sketch& s) {
                     wide(s);
                     const NodeId x = shifted_images(s), weight = s.parameter("weight", {s.J, s.J}, -0.3, 0.3);
                     auto layer = [=](Sketch& t, NodeId carry, const std::string&) {
                       return t.b.unary(Op::tanh, t.b.einsum({carry, weight}, {{b, i, j}, {k, j}, {b, i, k}}));
                     };
                     weighted_outputs(s, stack(s, x, "blocks", 3, layer));
                   }});
  cases.push_back({"wide_scores_of_one_operand_and_another", [=](Sketch& s) {
                     wide(s);
                     const NodeId x = shifted_images(s, -1, 1);
                     weighted_outputs(s, attention(s, s.b.unary(Op::tanh, x), x, s.b.unary(Op::exp, x)));
                   }});
  cases.push_back({"wide_product_over_two_axes", [=](Sketch& s) {  // as patches in rows and columns are read
                     s.I = Dim::axis("I", 4);
                     s.J = Dim::axis("J", 9);
                     const Dim rows = Dim::constant(11), columns = Dim::constant(22);
                     const NodeId x = s.input("images", {s.B, rows, s.I, s.J}, -1, 1);
                     const NodeId weight = s.parameter("weight", {columns, s.I, s.J}, -1, 1);
                     const NodeId y = s.b.einsum({x, weight}, {{b, k, i, j}, {'d', i, j}, {b, k, 'd'}});
                     weighted_outputs(s, s.b.unary(Op::gelu, y));
                   }});
  cases.push_back({"wide_product_of_one_row", [=](Sketch& s) {
                     wide(s);
                     const NodeId x = s.b.reduce(Op::reduce_sum, shifted_images(s, -1, 1), {1});
                     const NodeId weight = s.parameter("weight", {Dim::constant(70), s.J}, -1, 1);
                     weighted_outputs(s, s.b.einsum({x, weight}, {{b, j}, {k, j}, {b, k}}));
                   }});
}

/// Scores that are too many to stay near: a block of one head's queries goes by after the other, backward too where
/// there are more yet.
void many_scores(std::vector<GeneratedCase>& cases) {
  // Of so many tokens; layers: 0 is attention outside of a stack.
  const auto attention_of = [&](const std::string& name, int tokens, int heads, Probabilities of, int layers) {
    cases.push_back({name, [=](Sketch& s) {
                       s.I = Dim::axis("I", tokens);
                       const NodeId x = shifted_images(s, -1, 1);
                       const auto layer = [=](Sketch& t, NodeId carry, const std::string& path) {
                         return heads_attention(t, carry, path, heads, of);
                       };
                       weighted_outputs(s, layers ? stack(s, x, "blocks", layers, layer) : layer(s, x, "attn"));
                     }});
  };
  attention_of("attention_by_blocks_of_queries", 107, 3, Probabilities::all, 0);
  attention_of("attentions_by_blocks_of_queries_that_drop_out", 131, 2, Probabilities::dropped, 2);
  attention_of("gradient_of_many_scores", 211, 3, Probabilities::all, 0);
  attention_of("gradient_of_many_causal_scores", 257, 2, Probabilities::causal, 1);
  cases.push_back({"gradient_by_blocks_of_keys", [](Sketch& s) {
                     s.I = Dim::axis("I", 1379);
                     const NodeId x = shifted_images(s, -1, 1);
                     weighted_outputs(s, heads_attention(s, x, "attn", 1, Probabilities::all, 193));
                   }});
  // Forward by blocks of keys as well, of which the last one has fewer; below, all of the first ones are masked.
  cases.push_back({"attention_by_blocks_of_keys", [](Sketch& s) {
                     s.I = Dim::axis("I", 1603);
                     const NodeId x = shifted_images(s, -1, 1);
                     weighted_outputs(s, heads_attention(s, x, "attn", 2, Probabilities::all, 21));
                   }});
  // Of whole rows of keys, of which blocks have 11, 11, 11 and 10; and all of them in one block.
  for (const auto& [name, rows, columns, queries] :
       {std::tuple("attention_by_blocks_of_rows_of_keys", 43, 38, 21), {"attention_by_blocks_and_rows", 14, 13, 0}})
    cases.push_back({name, [=](Sketch& s) {
                       s.K = Dim::axis("K", columns);
                       s.I = Dim::constant(rows) * s.K;
                       const NodeId x = shifted_images(s, -1, 1);
                       weighted_outputs(s,
                                        heads_attention(s, x, "attn", 2, Probabilities::by_rows_and_columns, queries));
                     }});
  cases.push_back({"attention_by_blocks_of_late_keys", [](Sketch& s) {
                     s.I = Dim::axis("I", 1603);
                     const NodeId x = shifted_images(s, -1, 1);
                     const auto layer = [](Sketch& t, NodeId carry, const std::string& path) {
                       const NodeId y = heads_attention(t, carry, path, 1, Probabilities::of_late_keys, 37);
                       return t.b.multiply(carry,
                                           t.b.broadcast(t.b.reduce(Op::reduce_sum, y, {1}), t.b.shape(carry), {0, 2}));
                     };
                     weighted_outputs(s, stack(s, x, "blocks", 2, layer));
                   }});
}

}  // namespace

std::vector<GeneratedCase> block_cases() {
  std::vector<GeneratedCase> cases;
  layers(cases);
  sizes(cases);
  products(cases);
  many_scores(cases);
  return cases;
}

}  // namespace tessera::test
