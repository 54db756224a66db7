#include "codegen/passes/op.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/drop_last.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/extent.hpp"
#include "codegen/passes/print.hpp"

namespace tessera::codegen {

using graph::Node;

namespace {

std::string text_of(Attribute attribute, const Node& n) {
  switch (attribute) {
    case Attribute::none:
    case Attribute::init:  // how training starts; a checkpoint replaces it
    case Attribute::data:  // hashed beside the text, which it would swamp
      return "";
    case Attribute::name:
      return fmt::format(" \"{}\"", n.name);
    case Attribute::integers:
      return n.type == graph::Type::integer ? " integers" : "";
    case Attribute::undecayed:
      return n.decay ? "" : " undecayed";
    case Attribute::frozen:
      return n.trained ? "" : " frozen";
    case Attribute::value:
      return fmt::format(" {}", n.value);
    case Attribute::epsilon:
      return fmt::format(" epsilon={}", n.value);
    case Attribute::rate:
      return fmt::format(" rate={}", n.value);
    case Attribute::dim:
      return fmt::format(" {}", to_string(n.dim));
    case Attribute::axes:
      return fmt::format(" axes={}", n.axes);
    case Attribute::axis:
      return fmt::format(" axis={}", n.axes.at(0));
    case Attribute::offset:
      return fmt::format(" offset={}", n.offset);
    case Attribute::steps:
      return fmt::format(" stride={} dilation={}", n.stride, n.dilation);
    case Attribute::dropout:
      return fmt::format(" {}", n.offset);
    case Attribute::letters: {
      auto texts = n.letters | ranges::views::transform(letters_of) | ranges::to<std::vector<std::string>>();
      return fmt::format(" \"{}->{}\"", fmt::join(texts | ranges::views::drop_last(1), ","), texts.back());
    }
    case Attribute::rearrangement: {
      std::vector<std::string> extents;
      for (std::size_t i = 0; i < n.rearrangement.atoms.size(); ++i)
        extents.push_back(fmt::format("{}:{}", letters_of({static_cast<int>(i)}), to_string(n.rearrangement.atoms[i])));
      return fmt::format(" \"{}\" {}", print(n.rearrangement), fmt::join(extents, " "));
    }
  }
  return "";
}

}  // namespace

std::string attributes_of(const Node& n) {
  std::string text;
  for (Attribute attribute : row_of(n.op).attributes) text += text_of(attribute, n);
  return text;
}

std::string unlisted_field(const Node& n) {
  const auto lists = [&](auto... attributes) { return (ranges::contains(row_of(n.op).attributes, attributes) || ...); };
  using enum Attribute;
  // Every field by name: one more does not compile until it has its line.
  const auto& [op, type, region, operands, shape, path, line, name_, axes_, offset_, stride, dilation, value_, dim_,
               letters_, rearrangement_, data_, init_, decay, trained] = n;
  if (type != graph::Type::real && !lists(integers) && row_of(op).types != OperandTypes::as_result) return "type";
  if (!name_.empty() && !lists(name)) return "name";
  if (!axes_.empty() && !lists(axes, axis)) return "axes";
  if (offset_ != 0 && !lists(offset, dropout)) return "offset";
  if ((stride != 1 || dilation != 1) && !lists(steps)) return "stride";
  if (value_ != 0 && !lists(value, epsilon, rate)) return "value";
  if (dim_ != Dim{} && !lists(dim)) return "dim";
  if (!letters_.empty() && !lists(letters)) return "letters";
  if (!(rearrangement_.atoms.empty() && rearrangement_.from.empty() && rearrangement_.to.empty()) &&
      !lists(rearrangement))
    return "rearrangement";
  if (!data_.empty() && !lists(data)) return "data";
  if ((init_.a != 0 || init_.b != 0) && !lists(init)) return "init";
  if (!decay && !lists(undecayed)) return "decay";
  if (!trained && !lists(frozen)) return "trained";
  // Of every op: its operands and shape; where it stands.
  static_cast<void>(region);
  static_cast<void>(operands);
  static_cast<void>(shape);
  static_cast<void>(path);
  static_cast<void>(line);
  return "";
}

std::int64_t size_of_image(const graph::Node& n) {
  std::int64_t size = 1;
  for (const Dim& d : n.shape)
    if (d.known()) size *= d.value();
  return size;
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
  const std::size_t begin = text.find('{'), end = text.find('}', begin);
  if (end == std::string::npos) return text;
  int first = 0, step = 1;
  const char* const colon = std::find(text.data() + begin, text.data() + end, ':');
  std::from_chars(text.data() + begin + 1, colon, first);
  if (colon != text.data() + end) std::from_chars(colon + 1, text.data() + end, step);
  return text.replace(begin, end + 1 - begin, fmt::format("{}", first + step * layer));
}

}  // namespace tessera::codegen
