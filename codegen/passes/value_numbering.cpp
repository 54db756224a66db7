#include "codegen/passes/value_numbering.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/algorithm/sort.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/passes/op.hpp"
#include "dsl/text.hpp"

namespace tessera::codegen {

using graph::Node;
using graph::NodeId;
using graph::Op;

namespace {

/// A dim by what decides its equality.
std::string normal(const Dim& dim) {
  Text text;
  dim.normal.print(text);
  return fmt::format("{}={}", text.view(), dim.value());
}

bool worth_keeping(Op op) { return is_elementwise(op) || op == Op::einsum || is_reduction(op) || op == Op::softmax; }

}  // namespace

std::string ValueNumbering::key(NodeId id) const {
  const Node& n = graph_[id];
  // Every field by name: one more does not compile until it is a part of the key, or is said not to be.
  const auto& [op, type, region, read, shape, path, line, name, axes, offset, stride, dilation, value, dim, letters,
               rearrangement, data, init, decay, trained] = n;
  static_cast<void>(region);  // compared where a representative is looked for
  static_cast<void>(path);    // names alone differ
  static_cast<void>(line);
  static_cast<void>(type);  // follows from op and operands, or from an input's name
  static_cast<void>(data);  // no two tables are one
  static_cast<void>(init);  // of a parameter, which its name tells apart
  static_cast<void>(decay);
  static_cast<void>(trained);
  const bool unique = op == Op::table || op == Op::carry || op == Op::copy;
  std::vector<int> operands;
  for (NodeId o : read) operands.push_back(number_[at(o)]);
  if (row_of(op).commutes) ranges::sort(operands);
  auto dims = [](const std::vector<Dim>& shape) {
    return shape | ranges::views::transform(normal) | ranges::to<std::vector<std::string>>();
  };
  return fmt::format("{} {} {} {} {} {} {} {} {} {:a} {} {} {} {} {}", op_name(op), unique ? id : graph::none, operands,
                     dims(shape), name, axes, offset, stride, dilation, value, normal(dim), letters,
                     dims(rearrangement.atoms), rearrangement.from, rearrangement.to);
}

void ValueNumbering::number_new_nodes() {
  while (number_.size() < graph_.nodes.size()) {
    const auto id = static_cast<NodeId>(number_.size());
    const int number = numbers_.emplace(key(id), static_cast<int>(numbers_.size())).first->second;
    number_.push_back(number);
    first_.emplace(std::pair(number, graph_[id].region), id);
  }
}

NodeId ValueNumbering::representative(NodeId id) {
  number_new_nodes();
  const Node& n = graph_[id];
  const int mirror = graph_.regions[n.region].mirror;
  if (mirror != graph::none && worth_keeping(n.op)) {
    const auto mirrored = first_.find({number_[at(id)], mirror});
    if (mirrored != first_.end()) return mirrored->second;
  }
  return first_.at({number_[at(id)], n.region});
}

}  // namespace tessera::codegen
