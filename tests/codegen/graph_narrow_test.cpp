// Dead-slice elimination: what nobody reads is not computed, and what is left keeps its values.
#include <gtest/gtest.h>

#include <range/v3/algorithm/count.hpp>
#include <range/v3/algorithm/none_of.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/dead_slices.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;

constexpr int b = 'b', i = 'i', j = 'j', k = 'k', d = 'd', e = 'e';

/// The narrowed graph, which must have kept its values.
Graph narrowed(const Sketch& s) {
  Graph result = codegen::eliminate_dead_slices(s.graph);
  EXPECT_NO_THROW(codegen::verify(result)) << codegen::print(result);
  const Arrays before = interpret(s.graph, s.batch, s.given), after = interpret(result, s.batch, s.given);
  EXPECT_EQ(before.size(), after.size());
  for (const auto& [name, array] : before) {
    EXPECT_EQ(array.shape, after.at(name).shape) << name;
    for (std::size_t n = 0; n < array.numbers.size(); ++n)
      EXPECT_NEAR(array.numbers[n], after.at(name).numbers[n], 1e-12) << name << "\n" << codegen::print(result);
  }
  return result;
}

/// Whether slices are taken of inputs and parameters alone.
bool at_the_leaves(const Graph& g) {
  return ranges::none_of(g.nodes, [&](const Node& n) {
    const Op source = n.op == Op::slice ? g[n.operands[0]].op : Op::input;
    return source != Op::input && source != Op::parameter;
  });
}

/// A value [B, J, I] or of another shape, of which the second and third along axis 1 are read.
struct Read {
  const char* name;
  NodeId (*value)(Sketch& s, NodeId x);
  bool narrows = true;
};

const Read reads[] = {
    {"pointwise", [](Sketch& s, NodeId x) { return s.b.multiply(s.b.unary(Op::gelu, x), x); }},
    {"select", [](Sketch& s, NodeId x) { return s.b.select(x, s.b.unary(Op::exp, x), x); }},
    {"bias along another axis",
     [](Sketch& s, NodeId x) { return s.b.add(x, s.b.broadcast(s.parameter("p", {s.I}), s.b.shape(x), {2})); }},
    {"positions",
     [](Sketch& s, NodeId x) { return s.b.add(x, s.b.broadcast(s.parameter("p", {s.J, s.I}), s.b.shape(x), {1, 2})); }},
    {"softmax along another axis", [](Sketch& s, NodeId x) { return s.b.softmax(x, 2); }},
    {"softmax along the axis", [](Sketch& s, NodeId x) { return s.b.softmax(x, 1); }, false},
    {"log-softmax along another axis", [](Sketch& s, NodeId x) { return s.b.log_softmax(x, 2); }},
    {"layer norm of another axis",
     [](Sketch& s, NodeId x) {
       return s.b.layer_norm(x, s.parameter("p", {s.I}), s.parameter("q", {s.I}), {2}, 1e-5);
     }},
    {"layer norm of both",
     [](Sketch& s, NodeId x) {
       return s.b.layer_norm(x, s.parameter("p", {s.J, s.I}), s.parameter("q", {s.J, s.I}), {1, 2}, 1e-5);
     },
     false},
    {"sum over an axis before",
     [](Sketch& s, NodeId x) {
       const NodeId wide = s.b.broadcast(x, {s.B, s.K, s.J, s.I}, {0, 2, 3});
       return s.b.reduce(Op::reduce_sum, s.b.multiply(wide, wide), {1});
     }},
    {"maximum over an axis behind", [](Sketch& s, NodeId x) { return s.b.reduce(Op::reduce_max, x, {2}); }},
    {"windows",
     [](Sketch& s, NodeId x) {
       const NodeId y = s.b.unary(Op::exp, s.b.unfold(x, 1, s.K, s.J, -1, 1, 1));
       return s.b.reduce(Op::reduce_sum, s.b.unfold(y, 3, s.K, s.I, -1, 1, 1), {1, 3});
     }},
    {"windows along another axis",
     [](Sketch& s, NodeId x) {
       return s.b.reduce(Op::reduce_sum, s.b.unary(Op::exp, s.b.unfold(x, 2, s.K, s.I, -1, 1, 1)), {2});
     }},
    {"concat along another axis",
     [](Sketch& s, NodeId x) { return s.b.concat({x, s.b.unary(Op::exp, x)}, 2, s.I + s.I); }},
    {"concat along the axis", [](Sketch& s, NodeId x) { return s.b.concat({x, s.b.unary(Op::exp, x)}, 1, s.J + s.J); },
     false},
    {"permutation",
     [](Sketch& s, NodeId x) {
       const NodeId turned = s.b.rearrange(x, {{s.B, s.J, s.I}, {{0}, {1}, {2}}, {{2}, {1}, {0}}}, {s.I, s.J, s.B});
       return s.b.rearrange(turned, {{s.I, s.J, s.B}, {{0}, {1}, {2}}, {{2}, {1}, {0}}}, {s.B, s.J, s.I});
     }},
    {"dims that are merged",
     [](Sketch& s, NodeId x) {
       return s.b.rearrange(x, {{s.B, s.J, s.I}, {{0}, {1}, {2}}, {{0}, {1, 2}}}, {s.B, s.J * s.I});
     },
     false},
    {"linear map",
     [](Sketch& s, NodeId x) { return s.b.einsum({x, s.parameter("p", {s.K, s.I})}, {{b, j, i}, {k, i}, {b, j, k}}); }},
    {"a parameter's dim",
     [](Sketch& s, NodeId x) {
       return s.b.einsum({x, s.parameter("p", {s.J, s.I, s.J})}, {{b, d, i}, {j, i, d}, {b, j}});
     },
     false},
    {"self-attention",
     [](Sketch& s, NodeId x) {
       const NodeId scores = s.b.einsum({x, s.b.unary(Op::tanh, x)}, {{b, i, d}, {b, j, d}, {b, i, j}});
       return s.b.einsum({s.b.softmax(scores, 2), x}, {{b, i, j}, {b, j, e}, {b, i, e}});
     }},
    {"dropout for whole rows", [](Sketch& s, NodeId x) { return s.b.dropout(x, 0.25, {0, 2}); }},
};

TEST(Narrow, TakesASliceOfWhatAValueIsMadeOf) {
  for (const Read& read : reads) {
    SCOPED_TRACE(read.name);
    Sketch s;
    const NodeId x = s.input("images", {s.B, s.J, s.I});
    s.value("y", s.b.slice(read.value(s, x), 1, 1, Dim::constant(2)));
    const Graph result = narrowed(s);
    EXPECT_EQ(at_the_leaves(result), read.narrows) << codegen::print(result);
    if (!read.narrows) {
      EXPECT_EQ(codegen::print(result), codegen::print(s.graph));
    }
  }
}

TEST(Narrow, LeavesAloneWhatOthersReadAsAWhole) {
  Sketch s;
  const NodeId y = s.b.unary(Op::exp, s.input("images", {s.B, s.J}));
  s.value("part", s.b.slice(y, 1, 1, Dim::constant(2)));
  s.value("sum", s.b.reduce(Op::reduce_sum, y, {1}));
  EXPECT_EQ(codegen::print(narrowed(s)), codegen::print(s.graph));
}

TEST(Narrow, TakesTheFactorsOfADropoutFromTheirPlaceInTheWhole) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I});
  s.value("y", s.b.slice(s.b.dropout(s.b.unary(Op::exp, x), 0.5, {0, 1, 2}), 1, 3, Dim::constant(2)));
  const Graph result = narrowed(s);  // evaluated: nothing is dropped
  s.given["random"] = {{4}, {1, 2, 3, 4}};
  const Arrays whole = interpret(codegen::decompose(s.graph), s.batch, s.given),
               part = interpret(codegen::decompose(result), s.batch, s.given);
  EXPECT_EQ(whole.at("y").numbers, part.at("y").numbers);
  EXPECT_GT(ranges::count(part.at("y").numbers, 0.0), 0);
  for (const Node& n : result.nodes)
    if (n.op == Op::exp) {
      EXPECT_EQ(n.shape[1], Dim::constant(2));
    }
}

/// Layers of a residual block of attention and a linear map over tokens [B, J, I].
NodeId layers(Sketch& s, NodeId x, int count) {
  s.b.begin_region("blocks", count);
  const NodeId carry = s.b.carry(x);
  s.b.path = "blocks.{}.attention";
  const NodeId value =
      s.b.einsum({carry, s.parameter("blocks.{}.value", {s.I, s.I}, -1, 1)}, {{b, j, i}, {d, i}, {b, j, d}});
  const NodeId scores = s.b.softmax(s.b.einsum({carry, value}, {{b, i, d}, {b, j, d}, {b, i, j}}), 2);
  const NodeId y = s.b.add(carry, s.b.einsum({scores, value}, {{b, i, j}, {b, j, d}, {b, i, d}}));
  s.b.path = "blocks.{}.map";
  const NodeId z = s.b.einsum({y, s.parameter("blocks.{}.weight", {s.I, s.I}, -1, 1)}, {{b, j, i}, {d, i}, {b, j, d}});
  const NodeId out = s.b.add(y, s.b.unary(Op::tanh, z));
  s.b.path = "";
  return s.b.end_region({out})[0];
}

TEST(Narrow, TakesTheLastLayerOutOfItsRegionWhereOneTokenIsRead) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I}, -1, 1);
  s.weighted_loss(s.b.slice(layers(s, x, 3), 1, 0, Dim::constant(1)));
  const Graph result = narrowed(s);
  ASSERT_EQ(result.regions.size(), 2u);
  EXPECT_EQ(result.regions[1].count, 2);
  bool found = false;
  for (const Node& n : result.nodes) {
    if (n.region == 0 && n.op == Op::tanh) {
      EXPECT_EQ(n.shape[1], Dim::constant(1)) << codegen::print(result);
    }
    if (n.region == 0 && n.op == Op::softmax) {
      EXPECT_EQ(n.shape, (std::vector<Dim>{s.B, Dim::constant(1), s.J}));
    }
    if (n.region == 0 && n.op == Op::tanh) {
      EXPECT_EQ(n.path, "blocks.2.map");
    }
    found = found || (n.op == Op::parameter && n.region == 0 && n.name == "blocks.2.weight");
  }
  EXPECT_TRUE(found) << codegen::print(result);
  // Every gradient is that of the whole model.
  const Arrays whole = interpret(codegen::differentiate(s.graph, true), s.batch, s.given),
               part = interpret(codegen::differentiate(result, true), s.batch, s.given);
  ASSERT_EQ(whole.size(), part.size());
  for (const auto& [name, array] : whole)
    for (std::size_t n = 0; n < array.numbers.size(); ++n)
      EXPECT_NEAR(array.numbers[n], part.at(name).numbers[n], 1e-12) << name;
}

TEST(Narrow, LeavesNoRegionWhereThereWasOneLayer) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I}, -1, 1);
  s.value("y", s.b.slice(layers(s, x, 1), 1, 6, Dim::constant(1)));
  EXPECT_EQ(narrowed(s).regions.size(), 1u);
}

TEST(Narrow, KeepsALayerInItsRegionWhereMostOfItIsRead) {
  for (const std::int64_t length : {3, 4}) {
    Sketch s;
    const NodeId x = s.input("images", {s.B, s.J, s.I}, -1, 1);
    s.value("y", s.b.slice(layers(s, x, 2), 1, 0, Dim::constant(length)));
    EXPECT_EQ(narrowed(s).regions[1].count, length == 3 ? 1 : 2);
  }
}

TEST(Narrow, KeepsALayerInItsRegionWhoseValuesAreAnOutput) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I}, -1, 1);
  s.value("y", s.b.slice(layers(s, x, 2), 1, 0, Dim::constant(1)));
  for (std::size_t n = 0; n < s.graph.nodes.size(); ++n)
    if (s.graph.nodes[n].op == Op::softmax) s.value("maps", static_cast<NodeId>(n));
  EXPECT_EQ(codegen::eliminate_dead_slices(s.graph).regions[1].count, 2);
}

TEST(Narrow, GivesTheDropoutsOfTheLayerItTakesOutNumbersOfTheirOwn) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I});
  const NodeId before = s.b.dropout(x, 0.5, {0, 1, 2});
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(before);
  const NodeId out = s.b.end_region({s.b.dropout(s.b.unary(Op::tanh, carry), 0.5, {0, 1, 2})})[0];
  s.value("y", s.b.slice(out, 1, 0, Dim::constant(1)));
  std::vector<std::int64_t> numbers;
  for (const Node& n : narrowed(s).nodes)
    if (n.op == Op::dropout) numbers.push_back(n.offset);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST(Narrow, LeavesAParameterThatNobodyNeedsToTheDifferentiation) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.J, s.I}, -1, 1);
  s.parameter("idle", {s.I});
  s.weighted_loss(s.b.slice(layers(s, x, 2), 1, 0, Dim::constant(1)));
  EXPECT_THROW(codegen::differentiate(codegen::eliminate_dead_slices(s.graph), false), codegen::Error);
}

}  // namespace
}  // namespace tessera::test
