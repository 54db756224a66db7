#include "codegen/passes/op.hpp"

#include <fmt/format.h>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/extent.hpp"

namespace tessera::codegen {

using graph::Op;

std::string_view op_name(Op op) {
  switch (op) {
    case Op::input:
      return "input";
    case Op::parameter:
      return "parameter";
    case Op::table:
      return "table";
    case Op::constant:
      return "constant";
    case Op::extent:
      return "extent";
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
    case Op::copy:
      return "copy";
    case Op::broadcast:
      return "broadcast";
    case Op::one_hot:
      return "one_hot";
    case Op::rearrange:
      return "rearrange";
    case Op::slice:
      return "slice";
    case Op::concat:
      return "concat";
    case Op::einsum:
      return "einsum";
    case Op::reduce_sum:
      return "reduce_sum";
    case Op::reduce_max:
      return "reduce_max";
    case Op::softmax:
      return "softmax";
    case Op::layer_norm:
      return "layer_norm";
    case Op::cross_entropy:
      return "cross_entropy";
    case Op::carry:
      return "carry";
    case Op::carry_out:
      return "carry_out";
  }
  return "unknown";
}

bool is_unary(Op op) {
  switch (op) {
    case Op::negate:
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::tanh:
    case Op::erf:
    case Op::gelu:
    case Op::gelu_gradient:
    case Op::relu:
    case Op::step:
    case Op::copy:
      return true;
    default:
      return false;
  }
}

bool is_binary(Op op) {
  switch (op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::maximum:
    case Op::equal:
      return true;
    default:
      return false;
  }
}

std::string to_string(const std::vector<Dim>& shape) {
  auto dims = shape | ranges::views::transform([](const Dim& dim) { return to_string(dim); });
  return fmt::format("[{}]", dims | ranges::views::join(std::string(", ")) | ranges::to<std::string>());
}

bool same_size(const Dim& a, const Dim& b) { return a == b || (a.known() && b.known() && a.value() == b.value()); }

std::string letters_of(const std::vector<int>& letters) {
  std::string text;
  for (int letter : letters) {
    const bool written = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (written)
      text += static_cast<char>(letter);
    else if (letter >= 0 && letter < 26)
      text += static_cast<char>('a' + letter);
    else
      text += fmt::format("<{}>", letter);
  }
  return text;
}

}  // namespace tessera::codegen
