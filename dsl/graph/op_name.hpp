// What an operation is called.
#pragma once

#include <string_view>

#include "dsl/graph/graph.hpp"

namespace tessera::graph {

/// "reduce_sum": the name in dumps and sentences.
inline std::string_view op_name(Op op) {
  switch (op) {
    case Op::input:
      return "input";
    case Op::parameter:
      return "parameter";
    case Op::table:
      return "table";
    case Op::constant:
      return "constant";
    case Op::arange:
      return "arange";
    case Op::extent:
      return "extent";
    case Op::keep:
      return "keep";
    case Op::add:
      return "add";
    case Op::subtract:
      return "subtract";
    case Op::multiply:
      return "multiply";
    case Op::divide:
      return "divide";
    case Op::maximum:
      return "maximum";
    case Op::negate:
      return "negate";
    case Op::exp:
      return "exp";
    case Op::log:
      return "log";
    case Op::sqrt:
      return "sqrt";
    case Op::rsqrt:
      return "rsqrt";
    case Op::tanh:
      return "tanh";
    case Op::sin:
      return "sin";
    case Op::cos:
      return "cos";
    case Op::erf:
      return "erf";
    case Op::gelu:
      return "gelu";
    case Op::gelu_gradient:
      return "gelu_gradient";
    case Op::relu:
      return "relu";
    case Op::step:
      return "step";
    case Op::equal:
      return "equal";
    case Op::select:
      return "select";
    case Op::copy:
      return "copy";
    case Op::broadcast:
      return "broadcast";
    case Op::integers:
      return "integers";
    case Op::one_hot:
      return "one_hot";
    case Op::rearrange:
      return "rearrange";
    case Op::slice:
      return "slice";
    case Op::unfold:
      return "unfold";
    case Op::fold:
      return "fold";
    case Op::concat:
      return "concat";
    case Op::cache:
      return "cache";
    case Op::einsum:
      return "einsum";
    case Op::reduce_sum:
      return "reduce_sum";
    case Op::reduce_max:
      return "reduce_max";
    case Op::softmax:
      return "softmax";
    case Op::log_softmax:
      return "log_softmax";
    case Op::layer_norm:
      return "layer_norm";
    case Op::cross_entropy:
      return "cross_entropy";
    case Op::gather:
      return "gather";
    case Op::stop_gradient:
      return "stop_gradient";
    case Op::gradient:
      return "gradient";
    case Op::dropout:
      return "dropout";
    case Op::carry:
      return "carry";
    case Op::carry_out:
      return "carry_out";
  }
  return "unknown";
}

}  // namespace tessera::graph
