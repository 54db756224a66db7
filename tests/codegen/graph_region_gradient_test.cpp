// Gradients through repeated regions against central differences.
#include <gtest/gtest.h>

#include "codegen/passes/differentiate.hpp"
#include "tests/codegen/support/gradient_check.hpp"

namespace tessera::test {
namespace {

using graph::NodeId;
using graph::Op;

constexpr int b = 'b', i = 'i', j = 'j';

/// x + tanh(x W + bias), the layer's own W and bias.
NodeId residual_layer(Sketch& s, NodeId x) {
  const NodeId weight = s.parameter("blocks.{}.weight", {s.I, s.I}, -1, 1);
  const NodeId bias = s.parameter("blocks.{}.bias", {s.I}, -1, 1);
  const NodeId product = s.b.einsum({x, weight}, {{b, i}, {j, i}, {b, j}});
  return s.b.add(x, s.b.unary(Op::tanh, s.b.add(product, s.b.broadcast(bias, s.b.shape(x), {1}))));
}

TEST(RegionGradient, OfAStackOfLayersReachesEveryLayersParametersAndTheInput) {
  Sketch s;
  const NodeId x = s.input("images", {s.B, s.I});
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(x);
  s.weighted_loss(s.b.end_region({residual_layer(s, carry)})[0]);
  check_gradients(s);
  const graph::Graph joint = codegen::differentiate(s.graph, true);
  ASSERT_EQ(joint.regions.size(), 3u);
  EXPECT_EQ(joint.regions[2].mirror, 1);
  EXPECT_TRUE(joint.regions[2].reversed);
  EXPECT_EQ(joint.regions[2].count, 3);
  const Arrays results = interpret(joint, s.batch, s.given);
  for (const char* name : {"blocks.0.weight", "blocks.1.weight", "blocks.2.bias", "images"})
    EXPECT_TRUE(results.contains(name));
}

TEST(RegionGradient, OfWeightsSharedByAllLayersAddsUpOverThem) {
  Sketch s;
  const NodeId weight = s.parameter("weight", {s.I, s.I}, -1, 1), x = s.parameter("x", {s.B, s.I});
  s.b.begin_region("blocks", 4);
  const NodeId carry = s.b.carry(x);
  const NodeId y = s.b.unary(Op::tanh, s.b.einsum({carry, weight}, {{b, i}, {j, i}, {b, j}}));
  const NodeId out = s.b.end_region({y})[0];
  s.weighted_loss(s.b.add(out, s.b.einsum({x, weight}, {{b, i}, {j, i}, {b, j}})));
  check_gradients(s);
}

TEST(RegionGradient, OfValuesCapturedFromTheTopLevelAddsUpAlsoWithUsesBeyondTheRegion) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I}), y = s.b.unary(Op::exp, s.parameter("y", {s.B, s.I}, -1, 0));
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(x);
  const NodeId half = s.b.slice(y, 1, 1, Dim::constant(2));
  const NodeId scale = s.b.broadcast(s.b.reduce(Op::reduce_sum, half, {1}), {s.B, s.I}, {0});
  const NodeId out = s.b.end_region({s.b.multiply(s.b.multiply(carry, y), scale)})[0];
  s.weighted_loss(s.b.add(s.b.multiply(out, y), x));
  check_gradients(s);
}

TEST(RegionGradient, OfSeveralCarriesFollowsEachThroughTheOthers) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I}), y = s.parameter("y", {s.B, s.I});
  s.b.begin_region("blocks", 3);
  const NodeId p = s.b.carry(x), q = s.b.carry(y), idle = s.b.carry(x);
  const NodeId product = s.b.multiply(p, s.b.unary(Op::tanh, q));
  const std::vector<NodeId> out = s.b.end_region({s.b.unary(Op::tanh, q), product, idle});
  s.weighted_loss(s.b.add(out[1], out[2]));
  check_gradients(s);
}

TEST(RegionGradient, OfACarryThatStartsAsAConstantReachesTheParametersInside) {
  Sketch s;
  const NodeId start = s.b.broadcast(s.b.constant(0.5), {s.B, s.I}, {});
  s.b.begin_region("blocks", 3);
  const NodeId carry = s.b.carry(start);
  s.weighted_loss(s.b.end_region({residual_layer(s, carry)})[0]);
  check_gradients(s);
}

TEST(RegionGradient, OfTwoStacksOneAfterTheOtherGoesBackThroughBoth) {
  Sketch s;
  NodeId x = s.parameter("x", {s.B, s.I});
  for (const char* name : {"first.{}.scale", "second.{}.scale"}) {
    s.b.begin_region(std::string(name).substr(0, std::string(name).find('.')), 2);
    const NodeId carry = s.b.carry(x);
    const NodeId scale = s.b.broadcast(s.parameter(name, {s.I}), {s.B, s.I}, {1});
    x = s.b.end_region({s.b.unary(Op::gelu, s.b.multiply(carry, scale))})[0];
  }
  s.weighted_loss(x);
  check_gradients(s);
}

TEST(RegionGradient, OfANormedAttentionBlockAgreesInEveryForm) {
  Sketch s;
  const NodeId x = s.parameter("x", {s.B, s.I, s.J}, -1, 1);
  s.b.begin_region("blocks", 2);
  const NodeId carry = s.b.carry(x);
  const NodeId weight = s.parameter("blocks.{}.norm.weight", {s.J}), bias = s.parameter("blocks.{}.norm.bias", {s.J});
  const NodeId y = s.b.layer_norm(carry, weight, bias, {2}, 1e-5);
  const NodeId left = s.b.slice(y, 2, 0, Dim::constant(3)), right = s.b.slice(y, 2, 3, Dim::constant(4));
  std::vector<NodeId> heads;
  for (NodeId head : {left, right}) {
    const NodeId scores = s.b.einsum({head, head}, {{b, i, 'k'}, {b, j, 'k'}, {b, i, j}});
    heads.push_back(s.b.einsum({s.b.softmax(s.b.divide(scores, s.b.constant(1.7)), 2), head},
                               {{b, i, j}, {b, j, 'k'}, {b, i, 'k'}}));
  }
  s.weighted_loss(s.b.end_region({s.b.add(carry, s.b.concat(heads, 2, s.J))})[0]);
  check_gradients(s);
}

}  // namespace
}  // namespace tessera::test
