// sinusoidal: the fixed table of positions.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "dsl/tensor.hpp"

namespace tessera {

/// The table [Length, Width]: sin(p / 10000^(c/Width)) at even columns c, cos(p / 10000^((c-1)/Width)) at odd ones.
/// Vaswani et al. 2017, section 3.5. One table of a size stands once in a region. Sentence: [dim-unknown].
/// PyTorch equivalent: torch.where(c % 2 == 0, torch.sin(angle), torch.cos(angle)).
template <DimExpression auto Length, DimExpression auto Width>
auto sinusoidal() {
  using Table = Tensor<Length, Width>;
  constexpr auto problem = [] {
    Text t;
    if (Table::dims::poisoned || (Table::shape[0].known() && Table::shape[1].known())) return t;
    t.put("sinusoidal ");
    Table::shape.print(t);
    t.put(" needs sizes that are known when the program is compiled [dim-unknown]");
    return t;
  };
  if constexpr (Table::dims::poisoned) {
    return Poison{};
  } else if constexpr (!fits<decltype(problem)>) {
    return refuse<decltype(problem)>();
  } else {
    const std::int64_t length = Table::shape[0].value(), width = Table::shape[1].value();
    graph::Builder& r = recorder();
    std::string name = "sinusoidal_" + std::to_string(length) + "x" + std::to_string(width);
    for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(r.graph().nodes.size()); ++id) {
      const graph::Node& node = r.graph()[id];
      if (node.op == graph::Op::table && node.name == name && node.region == r.region) return Table(id);
    }
    std::vector<double> data;
    for (std::int64_t p = 0; p < length; ++p)
      for (std::int64_t c = 0; c < width; ++c) {
        const double rate = std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(width));
        const double angle = static_cast<double>(p) * rate;
        data.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    return Table(r.table(std::move(name), Table::shape.dims(), std::move(data)));
  }
}

}  // namespace tessera
