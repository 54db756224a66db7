// One model for each elementwise op.
#include <cmath>

#include "codegen/passes/op.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

using graph::NodeId;
using graph::Op;

std::vector<GeneratedCase> elementwise_cases() {
  std::vector<GeneratedCase> cases;
  auto unary = [&](Op op, double low, double high) {
    cases.push_back({std::string(codegen::op_name(op)),
                     [=](Sketch& s) { weighted_outputs(s, s.b.unary(op, shifted_images(s, low, high))); }});
  };
  for (Op op : {Op::negate, Op::exp, Op::tanh, Op::erf, Op::relu, Op::copy}) unary(op, -2, 2);
  for (Op op : {Op::gelu, Op::gelu_gradient}) unary(op, -5, 5);
  for (Op op : {Op::sin, Op::cos}) unary(op, -20, 20);
  for (Op op : {Op::log, Op::sqrt, Op::rsqrt}) unary(op, 0.3, 4);

  for (Op op : {Op::add, Op::subtract, Op::multiply, Op::divide, Op::maximum})
    cases.push_back({std::string(codegen::op_name(op)), [=](Sketch& s) {
                       const NodeId x = shifted_images(s), y = s.parameter("y", {s.J}, 0.5, 2);
                       weighted_outputs(s, s.b.binary(op, x, s.b.broadcast(y, s.b.shape(x), {2})));
                     }});

  // A step's and an equality's own derivative is zero.
  cases.push_back({"step", [](Sketch& s) {
                     const NodeId x = shifted_images(s);
                     weighted_outputs(s, s.b.multiply(x, s.b.unary(Op::step, x)));
                   }});
  cases.push_back({"equal", [](Sketch& s) {
                     const NodeId x = shifted_images(s);
                     const NodeId above = s.b.unary(Op::step, s.b.subtract(x, s.b.constant(1)));
                     weighted_outputs(s, s.b.multiply(x, s.b.binary(Op::equal, s.b.unary(Op::step, x), above)));
                   }});
  cases.push_back({"select", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.parameter("y", {s.J}, 0.5, 2);
                     const NodeId wide = s.b.broadcast(y, s.b.shape(x), {2});
                     const NodeId squares = s.b.multiply(x, x);
                     weighted_outputs(s, s.b.select(s.b.subtract(x, s.b.constant(0.5)), wide, squares));
                   }});
  cases.push_back({"select_of_what_is_infinite", [](Sketch& s) {  // masked scores: gradients stay numbers
                     const NodeId x = shifted_images(s);
                     const NodeId mask = s.b.unary(Op::step, s.b.subtract(x, s.b.constant(0.25)));
                     const NodeId masked = s.b.select(mask, s.b.constant(-INFINITY), x);
                     weighted_outputs(s, s.b.unary(Op::exp, masked));
                   }});
  cases.push_back({"dropout", [](Sketch& s) { weighted_outputs(s, s.b.dropout(shifted_images(s), 0.25, {0, 1, 2})); }});
  cases.push_back({"dropouts_in_a_row", [](Sketch& s) {  // each draws its own factors; the second one a row's at once
                     const NodeId x = s.b.dropout(shifted_images(s), 0.5, {0, 1, 2});
                     const NodeId rows = s.b.dropout(x, 0.125, {0, 1}), columns = s.b.dropout(x, 0.5, {0, 2});
                     weighted_outputs(s, s.b.add(rows, columns));
                   }});
  cases.push_back({"extent", [](Sketch& s) {
                     const NodeId x = s.b.divide(shifted_images(s), s.b.extent(s.B));
                     weighted_outputs(s, s.b.multiply(x, s.b.extent(s.I + Dim::constant(1))));
                   }});
  cases.push_back({"one_number", [](Sketch& s) {  // a parameter without dims
                     const NodeId x = shifted_images(s), scale = s.parameter("scale", {}, 0.5, 2);
                     weighted_outputs(s, s.b.multiply(x, s.b.unary(Op::exp, scale)));
                   }});
  return cases;
}

}  // namespace tessera::test
