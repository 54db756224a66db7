#include "codegen/passes/equivalent.hpp"

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

bool worth_keeping(Op op) {
  return is_pointwise(op) || op == Op::einsum || op == Op::reduce_sum || op == Op::reduce_max || op == Op::softmax;
}

}  // namespace

std::string Equivalence::key(NodeId id) const {
  const Node& n = graph_[id];
  const bool unique = n.op == Op::table || n.op == Op::carry || n.op == Op::copy;
  std::vector<int> operands;
  for (NodeId o : n.operands) operands.push_back(number_[at(o)]);
  if (n.op == Op::add || n.op == Op::multiply || n.op == Op::maximum || n.op == Op::equal) ranges::sort(operands);
  auto dims = [](const std::vector<Dim>& shape) {
    return shape | ranges::views::transform(normal) | ranges::to<std::vector<std::string>>();
  };
  return fmt::format("{} {} {} {} {} {} {} {:a} {} {} {} {} {}", op_name(n.op), unique ? id : graph::none, operands,
                     dims(n.shape), n.name, n.axes, n.offset, n.value, normal(n.dim), n.letters,
                     dims(n.rearrangement.atoms), n.rearrangement.from, n.rearrangement.to);
}

void Equivalence::number_new_nodes() {
  while (number_.size() < graph_.nodes.size()) {
    const auto id = static_cast<NodeId>(number_.size());
    const int number = numbers_.emplace(key(id), static_cast<int>(numbers_.size())).first->second;
    number_.push_back(number);
    first_.emplace(std::pair(number, graph_[id].region), id);
  }
}

NodeId Equivalence::representative(NodeId id) {
  number_new_nodes();
  const Node& n = graph_[id];
  const int mirror = graph_.regions[static_cast<std::size_t>(n.region)].mirror;
  if (mirror != graph::none && worth_keeping(n.op)) {
    const auto mirrored = first_.find({number_[at(id)], mirror});
    if (mirrored != first_.end()) return mirrored->second;
  }
  return first_.at({number_[at(id)], n.region});
}

}  // namespace tessera::codegen
