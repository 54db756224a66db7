// Random models: a chain of ops on the images, with sizes beside what vectors and micro-kernels hold. A name says all
// of a case, "fuzz_7_23" being case 23 of seed 7, so that a failure can be had again and kept.
#include <cstdio>
#include <set>
#include <stdexcept>

#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

using graph::NodeId;
using graph::Op;

namespace {

constexpr int b = 'b', h = 'h', m = 'm', n = 'n', k = 'k', l = 'l';

/// SplitMix64, Steele et al. 2014: the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}
  int below(int end) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<std::uint64_t>(end));
  }
  /// One of the sizes at which kernels are cut differently: full vectors of each width, one more, one fewer, or any.
  int size() {
    static constexpr int edges[] = {1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48};
    return below(3) ? edges[below(16)] : 1 + below(40);
  }

 private:
  std::uint64_t state_;
};

class Chain {
 public:
  Chain(Sketch& sketch, std::uint64_t seed, std::uint64_t number) : s_(sketch), r_(seed * 1000003 + number) {
    s_.I = Dim::axis("I", r_.size());
    s_.J = Dim::axis("J", r_.size());
  }

  void record() {
    NodeId x = shifted_images(s_, -1, 1);
    for (int steps = 2 + r_.below(5); steps > 0; --steps) x = step(x);
    weighted_outputs(s_, x);
  }

 private:
  const std::vector<Dim>& shape(NodeId x) const { return s_.b.shape(x); }
  int extent(NodeId x, int axis) const { return static_cast<int>(shape(x)[static_cast<std::size_t>(axis)].value()); }
  Dim fresh(int size) {
    static std::set<std::string> names;  // dims refer to their names
    return Dim::axis(names.insert(name("A")).first->c_str(), size);
  }
  std::string name(const char* kind) { return kind + std::to_string(++names_); }
  NodeId parameter(const std::vector<Dim>& dims, double low = -0.5, double high = 0.5) {
    return s_.parameter(name("p"), dims, low, high);
  }

  NodeId unary(NodeId x) {
    static constexpr Op ops[] = {Op::tanh, Op::erf, Op::gelu, Op::negate, Op::relu};
    const Op op = ops[r_.below(5)];
    return s_.b.unary(op, x);
  }
  NodeId of_parameter(NodeId x) {
    static constexpr Op ops[] = {Op::add, Op::subtract, Op::multiply, Op::maximum};
    const Op op = ops[r_.below(4)];
    const bool row = r_.below(2);
    const std::vector<Dim> all = shape(x);
    const NodeId p = row ? parameter({all[2]}) : parameter({all[1], all[2]});
    return s_.b.binary(op, x, s_.b.broadcast(p, all, row ? std::vector<int>{2} : std::vector<int>{1, 2}));
  }
  NodeId linear(NodeId x, const Dim& to) {
    const NodeId weight = parameter({to, shape(x)[2]});
    const NodeId product = s_.b.einsum({x, weight}, {{b, m, n}, {k, n}, {b, m, k}});
    const NodeId bias = parameter({to});
    return s_.b.add(product, s_.b.broadcast(bias, shape(product), {2}));
  }
  NodeId mixed(NodeId x) {
    const NodeId weight = parameter({fresh(r_.size()), shape(x)[1]});
    return s_.b.einsum({weight, x}, {{k, m}, {b, m, n}, {b, k, n}});
  }
  NodeId norm(NodeId x) {
    const Dim last = shape(x)[2];
    const NodeId weight = parameter({last}, 0.5, 1.5);
    return s_.b.layer_norm(x, weight, parameter({last}), {2}, 0.01);
  }
  NodeId attention(NodeId x) {
    const Dim width = fresh(r_.size());
    const NodeId query = linear(x, width), key = linear(x, width), value = linear(x, width);
    const NodeId scores = s_.b.einsum({query, key}, {{b, m, k}, {b, n, k}, {b, m, n}});
    return s_.b.einsum({s_.b.softmax(s_.b.divide(scores, s_.b.constant(3)), 2), value},
                       {{b, m, n}, {b, n, k}, {b, m, k}});
  }
  NodeId attention_of_heads(NodeId x) {
    const Dim heads = fresh(1 + r_.below(4)), width = fresh(1 + r_.below(20));
    const auto projected = [&] {
      const NodeId weight = parameter({heads, width, shape(x)[2]});
      return s_.b.einsum({x, weight}, {{b, m, n}, {h, k, n}, {b, h, m, k}});
    };
    const NodeId query = projected(), key = projected(), value = projected();
    const NodeId scores = s_.b.einsum({query, key}, {{b, h, m, k}, {b, h, l, k}, {b, h, m, l}});
    const NodeId mixed = s_.b.einsum({s_.b.softmax(scores, 3), value}, {{b, h, m, l}, {b, h, l, k}, {b, h, m, k}});
    const graph::Rearrangement merge{{s_.B, heads, shape(x)[1], width}, {{0}, {1}, {2}, {3}}, {{0}, {2}, {1, 3}}};
    return s_.b.rearrange(mixed, merge, {s_.B, shape(x)[1], heads * width});
  }
  NodeId sliced(NodeId x) {
    const int axis = 1 + r_.below(2), all = extent(x, axis), length = 1 + r_.below(all),
              offset = r_.below(all - length + 1);
    return s_.b.slice(x, axis, offset, Dim::constant(length));
  }
  NodeId concat(NodeId x) {
    const int axis = 1 + r_.below(2);
    if (extent(x, axis) > 32) return unary(x);
    const NodeId other = unary(x);
    return s_.b.concat({x, other}, axis, Dim::constant(2 * extent(x, axis)));
  }
  NodeId transposed(NodeId x) {
    const std::vector<Dim> of = shape(x);
    return s_.b.rearrange(x, {of, {{0}, {1}, {2}}, {{0}, {2}, {1}}}, {of[0], of[2], of[1]});
  }
  NodeId minus_reduced(NodeId x) {
    const int axis = 1 + r_.below(2);
    const Op op = r_.below(2) ? Op::reduce_sum : Op::reduce_max;
    const NodeId of_row = s_.b.divide(s_.b.reduce(op, x, {axis}), s_.b.constant(extent(x, axis)));
    return s_.b.subtract(x, s_.b.broadcast(of_row, shape(x), {0, 3 - axis}));
  }
  NodeId residual(NodeId x) {
    const NodeId hidden = s_.b.unary(Op::gelu, linear(x, fresh(r_.size())));
    return s_.b.add(x, linear(hidden, shape(x)[2]));
  }
  NodeId dropped(NodeId x) {
    static const std::vector<int> axes[] = {{0}, {0, 1}, {0, 1, 2}};
    return s_.b.dropout(x, 0.25, axes[r_.below(3)]);
  }

  /// Of rows whose channels are the dim before.
  NodeId convolution(NodeId x) {
    const int length = extent(x, 2), dilation = 1 + r_.below(2), stride = 1 + r_.below(4) / 2;
    const int kernel = 1 + r_.below(4), padding = r_.below(4), reach = dilation * (kernel - 1) + 1;
    const int over = length + padding + r_.below(4) - reach;
    if (over < 0) return unary(x);
    const NodeId windows =
        s_.b.unfold(x, 2, Dim::constant(kernel), Dim::constant(over / stride + 1), -padding, stride, dilation);
    const NodeId weight = parameter({fresh(r_.size()), shape(x)[1], Dim::constant(kernel)});
    return s_.b.einsum({windows, weight}, {{b, m, l, n}, {k, m, l}, {b, k, n}});
  }

  NodeId step(NodeId x) {
    switch (r_.below(15)) {
      case 0:
        return unary(x);
      case 1:
        return of_parameter(x);
      case 2:
      case 3:
        return linear(x, fresh(r_.size()));
      case 4:
        return mixed(x);
      case 5:
        return norm(x);
      case 6:
        return s_.b.softmax(x, 1 + r_.below(2));
      case 7:
        return attention(x);
      case 8:
        return attention_of_heads(x);
      case 9:
        return sliced(x);
      case 10:
        return concat(x);
      case 11:
        return transposed(x);
      case 12:
        return r_.below(2) ? minus_reduced(x) : dropped(x);
      case 13:
        return convolution(x);
      default:
        return residual(x);
    }
  }

  Sketch& s_;
  Random r_;
  int names_ = 0;
};

}  // namespace

GeneratedCase fuzz_case(const std::string& name) {
  unsigned long seed = 0, number = 0;
  if (std::sscanf(name.c_str(), "fuzz_%lu_%lu", &seed, &number) != 2)
    throw std::invalid_argument("there is no random model " + name);
  return {name, [=](Sketch& s) { Chain(s, seed, number).record(); }};
}

}  // namespace tessera::test
