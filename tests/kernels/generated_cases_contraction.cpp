// Models about sums: einsum in several forms, reductions, softmax, layer norm.
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

using graph::NodeId;
using graph::Op;

namespace {

constexpr int b = 'b', i = 'i', j = 'j', k = 'k', l = 'l';

void products(std::vector<GeneratedCase>& cases) {
  cases.push_back({"einsum_matrix_product", [](Sketch& s) {
                     const NodeId x = shifted_images(s), weight = s.parameter("weight", {s.J + s.K, s.J}, -1, 1);
                     weighted_outputs(s, s.b.einsum({x, weight}, {{b, i, j}, {k, j}, {b, i, k}}));
                   }});
  cases.push_back({"einsum_matrix_product_from_the_left", [](Sketch& s) {
                     const NodeId x = shifted_images(s), weight = s.parameter("weight", {s.I, s.I + s.K}, -1, 1);
                     weighted_outputs(s, s.b.einsum({weight, x}, {{i, k}, {b, i, j}, {b, j, k}}));
                   }});
  cases.push_back({"einsum_of_each_image_with_itself", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.unary(Op::tanh, x);
                     weighted_outputs(s, s.b.einsum({x, y}, {{b, i, k}, {b, j, k}, {b, i, j}}));
                   }});
  cases.push_back({"einsum_over_the_rows_of_two_images", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.b.unary(Op::tanh, x);
                     weighted_outputs(s, s.b.einsum({x, y}, {{b, i, j}, {b, i, k}, {b, k, j}}));
                   }});
  cases.push_back({"einsum_over_the_batch", [](Sketch& s) {  // a matrix of the whole batch, then used by every image
                     const NodeId x = shifted_images(s, -1, 1);
                     const NodeId all = s.b.einsum({x, s.b.unary(Op::tanh, x)}, {{b, i, j}, {b, i, k}, {j, k}});
                     weighted_outputs(s, s.b.einsum({x, all}, {{b, i, j}, {j, k}, {b, i, k}}));
                   }});
  cases.push_back({"einsum_over_the_batch_alone", [](Sketch& s) {
                     const NodeId x = shifted_images(s, -1, 1);
                     const NodeId all = s.b.einsum({x, s.b.unary(Op::exp, x)}, {{b, i, j}, {b, i, j}, {i, j}});
                     weighted_outputs(s, s.b.multiply(x, s.b.broadcast(all, s.b.shape(x), {1, 2})));
                   }});
  cases.push_back({"einsum_to_one_number_an_image", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.parameter("y", {s.I, s.J}, -1, 1);
                     const NodeId dot = s.b.einsum({x, y}, {{b, i, j}, {i, j}, {b}});
                     weighted_outputs(s, s.b.multiply(x, s.b.broadcast(dot, s.b.shape(x), {0})));
                   }});
  cases.push_back({"einsum_with_letters_of_one_operand_only", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.parameter("y", {s.J, s.K}, -1, 1);
                     weighted_outputs(s, s.b.einsum({x, y}, {{b, i, j}, {j, l}, {b, j}}));
                   }});
  cases.push_back({"einsum_of_one_operand",
                   [](Sketch& s) { weighted_outputs(s, s.b.einsum({shifted_images(s)}, {{b, i, j}, {b, j, i}})); }});
  cases.push_back({"einsum_of_one_operand_that_sums", [](Sketch& s) {
                     weighted_outputs(s, s.b.einsum({s.b.unary(Op::exp, shifted_images(s))}, {{b, i, j}, {b, j}}));
                   }});
  cases.push_back({"einsum_outer_product", [](Sketch& s) {
                     const NodeId x = shifted_images(s), y = s.parameter("y", {s.K}, -1, 1);
                     weighted_outputs(s, s.b.einsum({x, y}, {{b, i, j}, {k}, {b, i, k, j}}));
                   }});
}

void reductions(std::vector<GeneratedCase>& cases) {
  struct Over {
    std::string name;
    std::vector<int> axes;
  };
  for (const Over& over : {Over{"last_axis", {2}}, Over{"middle_axis", {1}}, Over{"image", {1, 2}}}) {
    for (Op op : {Op::reduce_sum, Op::reduce_max})
      cases.push_back(
          {std::string(op == Op::reduce_sum ? "reduce_sum" : "reduce_max") + "_over_the_" + over.name, [=](Sketch& s) {
             const NodeId x = shifted_images(s);
             const NodeId y = s.b.reduce(op, s.b.unary(Op::tanh, x), over.axes);
             std::vector<int> rest;
             for (int d = 0; d < 3; ++d)
               if (std::find(over.axes.begin(), over.axes.end(), d) == over.axes.end()) rest.push_back(d);
             weighted_outputs(s, s.b.multiply(x, s.b.broadcast(y, s.b.shape(x), rest)));
           }});
  }
  cases.push_back({"reduce_sum_over_the_batch", [](Sketch& s) {
                     const NodeId x = shifted_images(s, -1, 1);
                     const NodeId sum = s.b.reduce(Op::reduce_sum, s.b.unary(Op::tanh, x), {0});
                     weighted_outputs(s, s.b.multiply(x, s.b.broadcast(sum, s.b.shape(x), {1, 2})));
                   }});
  cases.push_back({"reduce_max_over_the_batch", [](Sketch& s) {
                     const NodeId x = shifted_images(s, -1, 1);
                     const NodeId most = s.b.reduce(Op::reduce_max, x, {0});
                     weighted_outputs(s, s.b.multiply(x, s.b.broadcast(most, s.b.shape(x), {1, 2})));
                   }});
  cases.push_back({"sums_over_the_batch_one_after_the_other", [](Sketch& s) {  // x less its mean, over its variance
                     const NodeId x = shifted_images(s), count = s.b.extent(s.B);
                     auto mean = [&](NodeId node) {
                       const NodeId sum = s.b.divide(s.b.reduce(Op::reduce_sum, node, {0}), count);
                       return s.b.broadcast(sum, s.b.shape(x), {1, 2});
                     };
                     const NodeId centred = s.b.subtract(x, mean(x));
                     const NodeId variance = s.b.add(mean(s.b.multiply(centred, centred)), s.b.constant(0.5));
                     weighted_outputs(s, s.b.multiply(centred, s.b.unary(Op::rsqrt, variance)));
                   }});
  cases.push_back({"sum_over_the_batch_of_what_another_sum_weighs", [](Sketch& s) {
                     const NodeId x = shifted_images(s, -1, 1);
                     auto sum = [&](NodeId node) {
                       return s.b.broadcast(s.b.reduce(Op::reduce_sum, node, {0}), s.b.shape(x), {1, 2});
                     };
                     weighted_outputs(s, s.b.multiply(x, sum(s.b.multiply(x, sum(x)))));
                   }});
  cases.push_back({"reduce_sum_over_everything", [](Sketch& s) {
                     const NodeId x = shifted_images(s, -1, 1);
                     const NodeId sum = s.b.reduce(Op::reduce_sum, x, {0, 1, 2});
                     weighted_outputs(s, s.b.multiply(x, s.b.unary(Op::tanh, sum)));
                   }});
}

void rows(std::vector<GeneratedCase>& cases) {
  cases.push_back(
      {"softmax_over_the_last_axis", [](Sketch& s) { weighted_outputs(s, s.b.softmax(shifted_images(s), 2)); }});
  cases.push_back({"log_softmax", [](Sketch& s) { weighted_outputs(s, s.b.log_softmax(shifted_images(s), 2)); }});
  cases.push_back({"log_softmax_over_a_middle_axis",
                   [](Sketch& s) { weighted_outputs(s, s.b.log_softmax(shifted_images(s), 1)); }});
  cases.push_back(
      {"softmax_over_a_middle_axis", [](Sketch& s) { weighted_outputs(s, s.b.softmax(shifted_images(s), 1)); }});
  auto layer_norm = [&](const std::string& name, std::vector<int> axes) {
    cases.push_back({"layer_norm_over_" + name, [=](Sketch& s) {
                       const NodeId x = shifted_images(s);
                       std::vector<Dim> shape;
                       for (int axis : axes) shape.push_back(s.b.shape(x)[static_cast<std::size_t>(axis)]);
                       const NodeId weight = s.parameter("weight", shape), bias = s.parameter("bias", shape);
                       weighted_outputs(s, s.b.layer_norm(x, weight, bias, axes, 1e-5));
                     }});
  };
  layer_norm("the_last_axis", {2});
  layer_norm("a_middle_axis", {1});
  layer_norm("the_image", {1, 2});
}

}  // namespace

std::vector<GeneratedCase> contraction_cases() {
  std::vector<GeneratedCase> cases;
  products(cases);
  reductions(cases);
  rows(cases);
  return cases;
}

}  // namespace tessera::test
