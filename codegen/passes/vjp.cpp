#include "codegen/passes/vjp.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/normalised.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Builder;
using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

/// Of the calls that record, no two are arguments of one call: compilers differ in which argument they evaluate first,
/// and the emitted text must not.
class Vjp {
 public:
  Vjp(Builder& builder, NodeId id, NodeId gradient, const std::vector<bool>& wanted)
      : b_(builder), y_(id), g_(gradient), n_(builder.graph()[id]), wanted_(wanted), to_(n_.operands.size()) {}

  std::vector<Contribution> run() {
    if (is_unary(n_.op))
      give(0, [&] { return unary(x()); });
    else if (is_binary(n_.op))
      binary(x(), n_.operands[1]);
    else if (n_.op == Op::select)
      select();
    else
      structural();
    return to_;
  }

 private:
  NodeId x() const { return n_.operands[0]; }

  /// Records operand k's contribution when it is wanted.
  void give(std::size_t k, const auto& record) {
    if (wanted_[k]) to_[k].node = record();
  }

  NodeId times(NodeId a, NodeId b) { return b_.multiply(a, b); }
  NodeId scaled(NodeId a, double factor) { return b_.multiply(a, b_.constant(factor)); }

  /// g * dy/dx.
  NodeId unary(NodeId x) {
    switch (n_.op) {
      case Op::copy:
        return g_;
      case Op::negate:
        return b_.unary(Op::negate, g_);
      case Op::exp:
        return times(g_, y_);
      case Op::log:
        return b_.divide(g_, x);
      case Op::sqrt:
        return b_.divide(scaled(g_, 0.5), y_);
      case Op::rsqrt:
        return scaled(times(g_, times(y_, times(y_, y_))), -0.5);  // d x^(-1/2) = -x^(-3/2) / 2
      case Op::tanh: {
        const NodeId square = times(y_, y_);
        return times(g_, b_.subtract(b_.constant(1), square));
      }
      case Op::sin:
        return times(g_, b_.unary(Op::cos, x));
      case Op::cos:
        return b_.unary(Op::negate, times(g_, b_.unary(Op::sin, x)));
      case Op::erf:
        return times(g_, scaled(b_.unary(Op::exp, b_.unary(Op::negate, times(x, x))), 2 / std::sqrt(std::numbers::pi)));
      case Op::gelu:
        return times(g_, b_.unary(Op::gelu_gradient, x));
      case Op::gelu_gradient: {  // d (Phi + x phi) = (2 - x^2) phi
        const NodeId square = times(x, x);
        const NodeId density = scaled(b_.unary(Op::exp, scaled(square, -0.5)), 1 / std::sqrt(2 * std::numbers::pi));
        return times(g_, times(b_.subtract(b_.constant(2), square), density));
      }
      case Op::relu:
        return times(g_, b_.unary(Op::step, x));
      case Op::step:
        return graph::none;  // flat wherever it has a derivative
        TESSERA_BINARY_OPS(TESSERA_OP_CASE)
        TESSERA_TERNARY_OPS(TESSERA_OP_CASE)
        TESSERA_OTHER_OPS(TESSERA_OP_CASE)
        break;
    }
    return graph::none;
  }

  void binary(NodeId a, NodeId b) {
    switch (n_.op) {
      case Op::add:
        give(0, [&] { return g_; });
        give(1, [&] { return g_; });
        break;
      case Op::subtract:
        give(0, [&] { return g_; });
        give(1, [&] { return b_.unary(Op::negate, g_); });
        break;
      case Op::multiply:
        give(0, [&] { return times(g_, b); });
        give(1, [&] { return times(g_, a); });
        break;
      case Op::divide:
        give(0, [&] { return b_.divide(g_, b); });
        give(1, [&] { return b_.unary(Op::negate, b_.divide(times(g_, y_), b)); });
        break;
      case Op::maximum: {
        auto share = [&](NodeId mine, NodeId other) {
          const NodeId larger = b_.unary(Op::step, b_.subtract(mine, other));
          return times(g_, b_.add(larger, scaled(b_.binary(Op::equal, mine, other), 0.5)));
        };
        give(0, [&] { return share(a, b); });
        give(1, [&] { return share(b, a); });
        break;
      }
      case Op::equal:  // flat
        TESSERA_UNARY_OPS(TESSERA_OP_CASE)
        TESSERA_TERNARY_OPS(TESSERA_OP_CASE)
        TESSERA_OTHER_OPS(TESSERA_OP_CASE)
        break;
    }
  }

  /// Each choice gets the gradient where it was taken. Selected, not multiplied: what was not taken may be infinite.
  void select() {
    auto taken = [&](bool first) {
      const NodeId zero = b_.constant(0);
      return first ? b_.select(n_.operands[0], g_, zero) : b_.select(n_.operands[0], zero, g_);
    };
    give(1, [&] { return taken(true); });
    give(2, [&] { return taken(false); });
  }

  void structural() {
    const std::vector<Dim> shape = b_.shape(x());
    switch (n_.op) {
      case Op::broadcast:
        give(0, [&] {
          const std::vector<int> fresh = other_axes(n_.shape.size(), n_.axes);
          return fresh.empty() ? g_ : b_.reduce(Op::reduce_sum, g_, fresh);
        });
        break;
      case Op::rearrange:
        give(0, [&] {
          return b_.rearrange(g_, {n_.rearrangement.atoms, n_.rearrangement.to, n_.rearrangement.from}, shape);
        });
        break;
      case Op::slice:
        if (wanted_[0]) to_[0] = {g_, n_.axes[0], n_.offset};
        break;
      case Op::unfold:
        give(0, [&] { return b_.fold(g_, n_.axes[0], shape[n_.axes[0]], n_.offset, n_.stride, n_.dilation); });
        break;
      case Op::fold:
        give(0, [&] {
          const std::size_t kernel = at(n_.axes[0]);
          return b_.unfold(g_, n_.axes[0], shape[kernel], shape[kernel + 1], n_.offset, n_.stride, n_.dilation);
        });
        break;
      case Op::concat:
        concat();
        break;
      case Op::einsum:
        einsum();
        break;
      case Op::reduce_sum:
        give(0, [&] { return b_.broadcast(g_, shape, other_axes(shape.size(), n_.axes)); });
        break;
      case Op::reduce_max:
        give(0, [&] {
          const std::vector<int> kept = other_axes(shape.size(), n_.axes);
          const NodeId reached = b_.binary(Op::equal, x(), b_.broadcast(y_, shape, kept));
          const NodeId each = b_.divide(g_, b_.reduce(Op::reduce_sum, reached, n_.axes));
          return times(reached, b_.broadcast(each, shape, kept));
        });
        break;
      case Op::softmax:
        give(0, [&] { return times(y_, b_.subtract(g_, spread_reduce(b_, Op::reduce_sum, times(g_, y_), n_.axes))); });
        break;
      case Op::log_softmax:
        give(0, [&] {
          const NodeId total = spread_reduce(b_, Op::reduce_sum, g_, n_.axes);
          return b_.subtract(g_, times(b_.unary(Op::exp, y_), total));
        });
        break;
      case Op::dropout:  // the same factors again
        give(0, [&] {
          const NodeId dropped = b_.dropout(g_, n_.value, n_.axes);
          b_.graph()[dropped].offset = n_.offset;
          return dropped;
        });
        break;
      case Op::gather:
        give(0, [&] { return scattered(); });
        break;
      case Op::layer_norm:
        layer_norm();
        break;
      case Op::cross_entropy:  // (softmax - one hot) / rows
        give(0, [&] {
          const NodeId probabilities = b_.softmax(x(), static_cast<int>(shape.size()) - 1);
          const NodeId difference = b_.subtract(probabilities, b_.one_hot(n_.operands[1], shape.back()));
          return times(difference, b_.divide(g_, rows_of(b_, shape)));
        });
        break;
      case Op::integers:
      case Op::one_hot:
      case Op::stop_gradient:
        break;
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_LEAF_OPS(TESSERA_OP_CASE)
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
      case Op::cache:
        throw Error(fmt::format("the op {} has no gradient", op_name(n_.op)));
    }
  }

  /// Each row of the table gets the sum of the gradients of where it was taken.
  NodeId scattered() {
    const NodeId chosen = b_.one_hot(n_.operands[1], b_.shape(x())[0]);
    const int picks = static_cast<int>(b_.shape(n_.operands[1]).size());
    std::vector<int> left, right, result{picks};
    for (int i = 0; i <= picks; ++i) left.push_back(i);
    for (std::size_t i = 0; i < n_.shape.size(); ++i) {
      const int letter = static_cast<int>(i);
      right.push_back(letter < picks ? letter : letter + 1);
      if (letter >= picks) result.push_back(letter + 1);
    }
    return b_.einsum({chosen, g_}, {left, right, result});
  }

  void concat() {
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < n_.operands.size(); ++k) {
      const Dim length = b_.shape(n_.operands[k])[n_.axes[0]];
      give(k, [&] { return b_.slice(g_, n_.axes[0], offset, length); });
      if (!length.known() && k + 1 < n_.operands.size())
        throw Error(fmt::format("a concat{} has no gradient: a part before its last has no known size",
                                n_.path.empty() ? "" : " of " + n_.path));
      offset += length.value();
    }
  }

  /// The gradient of one operand is an einsum of the result's gradient with the other operand; a letter that stands
  /// only in this operand was summed over, so its gradient is the same all along it.
  void einsum() {
    for (std::size_t k = 0; k < n_.operands.size(); ++k)
      give(k, [&] {
        std::vector<NodeId> operands{g_};
        std::vector<std::vector<int>> letters{n_.letters.back()};
        if (n_.operands.size() == 2) {
          operands.push_back(n_.operands[1 - k]);
          letters.push_back(n_.letters[1 - k]);
        }
        std::vector<int> found, axes;
        for (std::size_t i = 0; i < n_.letters[k].size(); ++i) {
          const int letter = n_.letters[k][i];
          const bool stands =
              ranges::contains(letters[0], letter) || (letters.size() > 1 && ranges::contains(letters[1], letter));
          if (!stands) continue;
          found.push_back(letter);
          axes.push_back(static_cast<int>(i));
        }
        letters.push_back(found);
        const NodeId gradient = b_.einsum(operands, letters);
        const std::vector<Dim> shape = b_.shape(n_.operands[k]);
        return axes.size() == shape.size() ? gradient : b_.broadcast(gradient, shape, axes);
      });
  }

  /// With v the normalised x, s its inverse deviation, h = g * weight: dx = s (h - mean h - v mean(h v)).
  void layer_norm() {
    const std::vector<int> rest = other_axes(n_.shape.size(), n_.axes);
    auto over_rest = [&](NodeId value) { return rest.empty() ? value : b_.reduce(Op::reduce_sum, value, rest); };
    Normalised v{};
    if (wanted_[0] || wanted_[1]) v = normalised(b_, x(), n_.axes, n_.value);
    give(0, [&] {
      const NodeId h = times(g_, b_.broadcast(n_.operands[1], n_.shape, n_.axes));
      const NodeId along = times(v.value, spread_mean(b_, times(h, v.value), n_.axes));
      return times(v.inverse_spread, b_.subtract(b_.subtract(h, spread_mean(b_, h, n_.axes)), along));
    });
    give(1, [&] { return over_rest(times(g_, v.value)); });
    give(2, [&] { return over_rest(g_); });
  }

  Builder& b_;
  const NodeId y_, g_;
  const Node n_;  // a copy: recording moves the graph's nodes
  const std::vector<bool>& wanted_;
  std::vector<Contribution> to_;
};

}  // namespace

std::vector<Contribution> vjp(Builder& builder, NodeId id, NodeId gradient, const std::vector<bool>& wanted) {
  return Vjp(builder, id, gradient, wanted).run();
}

}  // namespace tessera::codegen
