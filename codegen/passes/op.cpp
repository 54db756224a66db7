#include "codegen/passes/op.hpp"

#include <fmt/format.h>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/extent.hpp"

namespace tessera::codegen {

using graph::Op;

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

std::string of_layer(std::string text, int layer) {
  if (std::size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, fmt::format("{}", layer));
  return text;
}

}  // namespace tessera::codegen
