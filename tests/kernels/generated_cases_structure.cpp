// Models about views and places: broadcast, rearrange, slice, concat, one-hot rows, indices.
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

using graph::NodeId;
using graph::Op;
using graph::Rearrangement;

namespace {

constexpr int b = 'b', i = 'i', j = 'j', k = 'k';

/// x W for x [B, I, J] and a parameter W [J, to].
NodeId product(Sketch& s, NodeId x, const std::string& name, const Dim& to) {
  const Dim from = s.b.shape(x).back();
  return s.b.einsum({x, s.parameter(name, {to, from}, -1, 1)}, {{b, i, j}, {k, j}, {b, i, k}});
}

void broadcasts(std::vector<GeneratedCase>& cases) {
  cases.push_back({"broadcast_over_rows", [](Sketch& s) {
                     const NodeId x = shifted_images(s), sum = s.b.reduce(Op::reduce_sum, x, {1});
                     const NodeId spread = s.b.broadcast(s.b.unary(Op::tanh, sum), s.b.shape(x), {0, 2});
                     weighted_outputs(s, s.b.multiply(x, spread));
                   }});
  cases.push_back({"broadcast_to_a_new_middle_axis", [](Sketch& s) {
                     const NodeId x = s.b.unary(Op::exp, shifted_images(s, -1, 1));
                     weighted_outputs(s, s.b.broadcast(x, {s.B, s.I, s.K, s.J}, {0, 1, 3}));
                   }});
}

void rearrangements(std::vector<GeneratedCase>& cases) {
  auto transposed = [](Sketch& s) { return Rearrangement{{s.B, s.I, s.J}, {{0}, {1}, {2}}, {{0}, {2}, {1}}}; };
  cases.push_back({"rearrange_as_a_view", [=](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.rearrange(x, transposed(s), {s.B, s.J, s.I});
                     const NodeId scale = s.parameter("scale", {s.I});
                     const NodeId spread = s.b.broadcast(scale, s.b.shape(y), {2});
                     weighted_outputs(s, s.b.multiply(s.b.unary(Op::tanh, y), spread));
                   }});
  cases.push_back({"rearrange_copied_for_a_product", [](Sketch& s) {  // whole vectors of columns, and rows left over
                     const Dim rows = Dim::axis("R", 37), columns = Dim::axis("C", 32);
                     const NodeId left = s.parameter("left", {rows, s.I}, -1, 1),
                                  right = s.parameter("right", {s.J, columns}, -1, 1);
                     const NodeId high =
                         s.b.einsum({left, shifted_images(s)}, {{'r', 'i'}, {'b', 'i', 'j'}, {'b', 'r', 'j'}});
                     const NodeId x = s.b.einsum({high, right}, {{'b', 'r', 'j'}, {'j', 'c'}, {'b', 'r', 'c'}});
                     const graph::Rearrangement turned{{s.B, rows, columns}, {{0}, {1}, {2}}, {{0}, {2}, {1}}};
                     const NodeId copied = s.b.unary(Op::copy, s.b.rearrange(x, turned, {s.B, columns, rows}));
                     weighted_outputs(s, s.b.einsum({x, copied}, {{'b', 'r', 'c'}, {'b', 'c', 's'}, {'b', 'r', 's'}}));
                   }});
  cases.push_back({"rearrange_as_the_output", [=](Sketch& s) {
                     weighted_outputs(s, s.b.rearrange(shifted_images(s), transposed(s), {s.B, s.J, s.I}));
                   }});
  cases.push_back({"rearrange_of_the_images_that_merges", [](Sketch& s) {  // nobody computes them: they are copied
                     const NodeId images = s.input("images", {s.B, s.I, s.J});
                     const Rearrangement r{{s.B, s.I, s.J}, {{0}, {1}, {2}}, {{0}, {2, 1}}};
                     const NodeId row = s.b.rearrange(images, r, {s.B, s.J * s.I});
                     const NodeId scale = s.b.broadcast(s.parameter("scale", {s.J * s.I}), s.b.shape(row), {1});
                     weighted_outputs(s, s.b.multiply(row, scale));
                   }});
  cases.push_back({"rearrange_to_patches", [](Sketch& s) {  // [B, C, 2 3, 3 5] -> [B, 2 3, C 3 5]
                     const Dim C = Dim::axis("C", 2), gh = Dim::axis("GH", 2), p = Dim::axis("P", 3);
                     const Dim gw = Dim::axis("GW", 3), q = Dim::axis("Q", 5);
                     const NodeId images = s.input("images", {s.B, C, gh * p, gw * q});
                     const Rearrangement r{
                         {s.B, C, gh, p, gw, q}, {{0}, {1}, {2, 3}, {4, 5}}, {{0}, {2, 4}, {1, 3, 5}}};
                     const NodeId patches = s.b.rearrange(images, r, {s.B, gh * gw, C * p * q});
                     weighted_outputs(s, product(s, patches, "weight", s.J));
                   }});
  cases.push_back({"rearrange_merged_in_place", [](Sketch& s) {  // heads [B, I, K, J] -> [B, I, J K]
                     const NodeId x = shifted_images(s);
                     const NodeId weight = s.parameter("weight", {s.K, s.J, s.J}, -1, 1);
                     const NodeId heads = s.b.einsum({x, weight}, {{b, i, j}, {'h', k, j}, {b, 'h', i, k}});
                     const Rearrangement r{{s.B, s.K, s.I, s.J}, {{0}, {1}, {2}, {3}}, {{0}, {2}, {3, 1}}};
                     const NodeId merged = s.b.rearrange(heads, r, {s.B, s.I, s.J * s.K});
                     weighted_outputs(s, product(s, merged, "proj", s.J));
                   }});
  cases.push_back({"rearrange_split", [](Sketch& s) {  // [B, I, K J] -> [B, K, I, J]
                     const NodeId wide = product(s, shifted_images(s), "weight", s.K * s.J);
                     const Rearrangement r{{s.B, s.I, s.K, s.J}, {{0}, {1}, {2, 3}}, {{0}, {2}, {1}, {3}}};
                     const NodeId heads = s.b.rearrange(wide, r, {s.B, s.K, s.I, s.J});
                     weighted_outputs(s, s.b.softmax(heads, 3));
                   }});
}

void parts(std::vector<GeneratedCase>& cases) {
  cases.push_back({"slice_of_the_last_axis", [](Sketch& s) {
                     const NodeId x = s.b.unary(Op::exp, shifted_images(s));
                     weighted_outputs(s, s.b.slice(x, 2, 2, Dim::constant(3)));
                   }});
  cases.push_back({"slice_of_a_middle_axis", [](Sketch& s) {
                     weighted_outputs(s, s.b.unary(Op::tanh, s.b.slice(shifted_images(s), 1, 4, Dim::constant(1))));
                   }});
  cases.push_back({"slices_that_overlap", [](Sketch& s) {
                     const NodeId x = s.b.unary(Op::tanh, shifted_images(s));
                     const NodeId left = s.b.slice(x, 2, 0, Dim::constant(5)),
                                  right = s.b.slice(x, 2, 1, Dim::constant(5));
                     weighted_outputs(s, s.b.multiply(left, right));
                   }});
  cases.push_back({"concat_of_the_last_axis", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = product(s, x, "weight", s.K);
                     const Dim total = s.J + s.K + s.J;
                     const NodeId all = s.b.concat({s.b.unary(Op::exp, x), y, s.b.unary(Op::tanh, x)}, 2, total);
                     const NodeId scale = s.b.broadcast(s.parameter("scale", {total}), s.b.shape(all), {2});
                     weighted_outputs(s, s.b.multiply(all, scale));
                   }});
  cases.push_back({"concat_with_a_token_in_front", [](Sketch& s) {  // [1, J] before [B, I, J]
                     const NodeId x = shifted_images(s), token = s.parameter("token", {Dim::constant(1), s.J});
                     const NodeId first = s.b.broadcast(token, {s.B, Dim::constant(1), s.J}, {1, 2});
                     const NodeId all = s.b.concat({first, product(s, x, "weight", s.J)}, 1, s.I + Dim::constant(1));
                     weighted_outputs(s, s.b.softmax(all, 1));
                   }});
  cases.push_back({"concat_of_one_value_twice", [](Sketch& s) {
                     const NodeId x = s.b.unary(Op::tanh, shifted_images(s));
                     weighted_outputs(s, s.b.concat({x, x}, 1, s.I + s.I));
                   }});
  cases.push_back({"concat_of_the_images_themselves", [](Sketch& s) {
                     const NodeId images = s.input("images", {s.B, s.I, s.J});
                     const NodeId shift = s.b.broadcast(s.parameter("shift", {s.J}), s.b.shape(images), {2});
                     weighted_outputs(s, s.b.concat({images, s.b.multiply(images, shift)}, 2, s.J + s.J));
                   }});
  cases.push_back({"halves_swapped", [](Sketch& s) {
                     const NodeId x = product(s, shifted_images(s), "weight", s.J);
                     const NodeId left = s.b.slice(x, 2, 0, Dim::constant(3)),
                                  right = s.b.slice(x, 2, 3, Dim::constant(4));
                     weighted_outputs(s, s.b.concat({s.b.unary(Op::tanh, right), s.b.unary(Op::exp, left)}, 2, s.J));
                   }});
}

void labels(std::vector<GeneratedCase>& cases) {
  auto logits = [](Sketch& s) { return s.b.reduce(Op::reduce_sum, product(s, shifted_images(s), "weight", s.J), {1}); };
  cases.push_back({"gather", [=](Sketch& s) {
                     const NodeId table = s.parameter("table", {s.I, s.J});
                     const NodeId rows = s.b.gather(table, s.labels("labels", {s.B}, s.I.value()));
                     const NodeId sums = s.b.reduce(Op::reduce_sum, shifted_images(s), {1});
                     outputs(s, sums);
                     s.loss(s.b.reduce(Op::reduce_sum, s.b.multiply(rows, sums), {0, 1}));
                   }});
  cases.push_back({"one_hot", [=](Sketch& s) {
                     const NodeId x = logits(s), rows = s.b.one_hot(s.labels("labels", {s.B}, s.J.value()), s.J);
                     outputs(s, x);
                     s.loss(s.b.reduce(Op::reduce_sum, s.b.multiply(s.b.unary(Op::tanh, x), rows), {0, 1}));
                   }});
  cases.push_back({"cross_entropy", [=](Sketch& s) {
                     const NodeId x = logits(s);
                     outputs(s, x);
                     s.loss(s.b.cross_entropy(x, s.labels("labels", {s.B}, s.J.value())));
                   }});
  cases.push_back({"cross_entropy_of_probabilities", [=](Sketch& s) {
                     const NodeId x = s.b.softmax(logits(s), 1);
                     outputs(s, x);
                     s.loss(s.b.cross_entropy(x, s.labels("labels", {s.B}, s.J.value())));
                   }});
}

void places(std::vector<GeneratedCase>& cases) {
  cases.push_back({"places_of_rows_and_lanes", [](Sketch& s) {
                     const NodeId x = shifted_images(s);
                     const NodeId row = s.b.broadcast(s.b.arange(s.I), s.b.shape(x), {1});
                     const NodeId lane = s.b.broadcast(s.b.arange(s.J), s.b.shape(x), {2});
                     weighted_outputs(s, s.b.add(s.b.multiply(x, row), lane));
                   }});
  cases.push_back({"places_through_views", [](Sketch& s) {  // lanes lie s.I apart, and begin at a later place
                     const NodeId x = shifted_images(s);
                     const Rearrangement turned{{s.J, s.I}, {{0, 1}}, {{1}, {0}}};
                     const NodeId apart = s.b.rearrange(s.b.arange(s.J * s.I), turned, {s.I, s.J});
                     const NodeId later = s.b.slice(s.b.arange(Dim::constant(20)), 0, 9, s.J);
                     const NodeId both = s.b.multiply(x, s.b.broadcast(apart, s.b.shape(x), {1, 2}));
                     weighted_outputs(s, s.b.add(both, s.b.broadcast(later, s.b.shape(x), {2})));
                   }});
  cases.push_back({"places_behind_a_costly_function", [](Sketch& s) {
                     const NodeId x = shifted_images(s);
                     const NodeId waves = s.b.unary(Op::sin, s.b.multiply(s.b.arange(s.J), s.b.constant(0.5)));
                     weighted_outputs(s, s.b.multiply(x, s.b.broadcast(waves, s.b.shape(x), {2})));
                   }});
  cases.push_back({"sums_weighted_by_places", [](Sketch& s) {
                     const NodeId x = shifted_images(s),
                                  rows = s.b.einsum({x, s.b.arange(s.J)}, {{b, i, j}, {j}, {b, i}});
                     weighted_outputs(s, s.b.unary(Op::tanh, s.b.multiply(rows, s.b.constant(0.125))));
                   }});
  cases.push_back({"sums_of_what_a_mask_leaves", [](Sketch& s) {  // of each row up to a place
                     const Dim columns = Dim::axis("C", 19);
                     const std::vector<Dim> shape{s.J, columns};
                     const NodeId end = s.b.broadcast(s.b.arange(columns), shape, {1});
                     const NodeId place = s.b.broadcast(s.b.arange(s.J), shape, {0});
                     const NodeId seen = s.b.unary(Op::step, s.b.subtract(end, place));
                     weighted_outputs(s, s.b.einsum({shifted_images(s), seen}, {{b, i, j}, {j, k}, {b, i, k}}));
                   }});
  cases.push_back({"causal_attention", [](Sketch& s) {
                     const Dim tokens = Dim::axis("T", 37), wide = Dim::axis("D", 32);
                     const NodeId x = shifted_images(s);
                     const auto projection = [&](const char* name) {
                       return s.b.einsum({s.parameter(name, {tokens, wide, s.J}, -0.5, 0.5), x},
                                         {{'t', 'd', 'j'}, {'b', 'i', 'j'}, {'b', 'i', 't', 'd'}});
                     };
                     const NodeId q = projection("q"), key = projection("k"), v = projection("v");
                     const NodeId scores = s.b.einsum({q, key}, {{b, i, 't', 'd'}, {b, i, 'u', 'd'}, {b, i, 't', 'u'}});
                     const std::vector<Dim> shape{tokens, tokens};
                     const NodeId behind = s.b.add(s.b.arange(tokens), s.b.constant(1));
                     const NodeId of_query = s.b.broadcast(behind, shape, {0});
                     const NodeId of_key = s.b.broadcast(s.b.arange(tokens), shape, {1});
                     const NodeId mask = s.b.unary(Op::step, s.b.subtract(of_query, of_key));
                     const NodeId wide_mask = s.b.broadcast(mask, s.b.shape(scores), {2, 3});
                     const NodeId p = s.b.softmax(s.b.select(wide_mask, scores, s.b.constant(-3e38)), 3);
                     weighted_outputs(s, s.b.einsum({p, v}, {{b, i, 't', 'u'}, {b, i, 'u', 'd'}, {b, i, 't', 'd'}}));
                   }});
}

}  // namespace

std::vector<GeneratedCase> structure_cases() {
  std::vector<GeneratedCase> cases;
  broadcasts(cases);
  rearrangements(cases);
  parts(cases);
  labels(cases);
  places(cases);
  return cases;
}

}  // namespace tessera::test
