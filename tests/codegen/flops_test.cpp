// How many operations a graph is: by hand, and as published.
#include "codegen/passes/flops.hpp"

#include <gtest/gtest.h>

#include "codegen/error.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"
#include "tests/codegen/support/sketch.hpp"

namespace tessera::codegen {

static void PrintTo(const Extent& e, std::ostream* out) { *out << to_string(e); }

}  // namespace tessera::codegen

namespace tessera::test {
namespace {

using codegen::Extent;
using codegen::flops;
using graph::NodeId;
using graph::Op;

TEST(Flops, OfALinearMapAreTwoForEachMultiplyAddAndOneForEachBias) {
  Sketch s;
  const NodeId x = s.input("x", {s.B, s.I});
  const NodeId weight = s.parameter("weight", {s.J, s.I});
  const NodeId bias = s.parameter("bias", {s.J});
  const NodeId product = s.b.einsum({x, weight}, {{0, 1}, {2, 1}, {0, 2}});
  EXPECT_EQ(flops(s.graph), (Extent{0, 2 * 5 * 7}));
  s.b.add(product, s.b.broadcast(bias, {s.B, s.J}, {1}));
  EXPECT_EQ(flops(s.graph), (Extent{0, 2 * 5 * 7 + 7}));
}

TEST(Flops, OfAProductWithoutASumAreOneForEachElementAndOfASumOneForEachThatItReads) {
  Sketch outer;
  outer.b.einsum({outer.parameter("a", {outer.I}), outer.parameter("b", {outer.J})}, {{0}, {1}, {0, 1}});
  EXPECT_EQ(flops(outer.graph), (Extent{5 * 7, 0}));

  Sketch sum;
  sum.b.einsum({sum.input("x", {sum.B, sum.I})}, {{0, 1}, {0}});
  EXPECT_EQ(flops(sum.graph), (Extent{0, 5}));

  Sketch largest;
  largest.b.reduce(Op::reduce_max, largest.input("x", {largest.B, largest.I}), {0});
  EXPECT_EQ(flops(largest.graph), (Extent{0, 5}));
}

TEST(Flops, OfWhatOnlyMovesNumbersAreNone) {
  Sketch s;
  const NodeId x = s.input("x", {s.B, s.I, s.J});
  s.b.einsum({x}, {{0, 1, 2}, {2, 1, 0}});
  s.b.slice(x, 1, 2, s.K);
  s.b.concat({x, x}, 1, s.I + s.I);
  s.b.unary(Op::copy, x);
  EXPECT_EQ(flops(s.graph), Extent{});
}

TEST(Flops, OfARepeatedBlockCountOnceALayer) {
  Sketch s;
  const NodeId x = s.input("x", {s.B, s.I});
  s.b.begin_region("blocks", 3);
  const NodeId y = s.b.carry(x);
  s.b.end_region({s.b.unary(Op::tanh, y)});
  EXPECT_EQ(flops(s.graph), (Extent{0, 3 * 5}));
}

TEST(Flops, OfASoftmaxAreThoseOfItsFiveSteps) {
  Sketch s;
  s.value("y", s.b.softmax(s.input("x", {s.B, s.J}), 1));
  EXPECT_THROW(flops(s.graph), codegen::Error);
  EXPECT_EQ(flops(codegen::decompose(s.graph)), (Extent{0, 5 * 7}));
}

TEST(Flops, ThatAreNotLinearInTheBatchAreRefused) {
  Sketch s;
  const NodeId x = s.input("x", {s.B, s.I});
  s.b.einsum({x, x}, {{0, 1}, {2, 1}, {0, 2}});
  EXPECT_THROW(flops(s.graph), codegen::Error);
}

/// Those of the einsums alone: everything else is made something that only moves numbers.
Extent of_contractions(const graph::Graph& declared) {
  graph::Graph g = codegen::simplify(codegen::decompose(declared));
  for (graph::Node& n : g.nodes)
    if (n.op != Op::einsum) n.op = Op::concat;
  return flops(g);
}

// torchvision's vit_b_16: 86,567,656 parameters and "GFLOPS 17.56", which are multiply-adds. By hand, for N+1 = 197:
// patches 196*768*768; a block 197*(768*2304 + 768*768 + 2*768*3072) + 2*197*197*768, times 12; head 768*1000.
TEST(Flops, OfViTBase16AreThePublishedMultiplyAdds) {
  constexpr std::int64_t patches = 196 * 768 * 768, head = 768 * 1000,
                         block = 197 * (768 * 2304 + 768 * 768 + 2 * 768 * 3072) + 2 * 197 * 197 * 768,
                         multiply_adds = patches + 12 * block + head;
  static_assert(multiply_adds / 10'000'000 == 1756);
  const graph::Graph declared = trace<models::VitBase>("vit_base");
  const graph::Graph forward = codegen::subgraph(declared, {"outputs"});
  EXPECT_EQ(of_contractions(forward), (Extent{0, 2 * multiply_adds}));
  const Extent all = flops(codegen::simplify(codegen::decompose(forward)));
  EXPECT_LT(all.per_batch, 2.01 * multiply_adds) << "what is no contraction is less than a percent";

  // Backwards each product is two, but for the patches: no gradient of the images is wanted.
  EXPECT_EQ(of_contractions(codegen::differentiate(declared, false)), (Extent{0, 2 * (3 * multiply_adds - patches)}));
}

}  // namespace
}  // namespace tessera::test
