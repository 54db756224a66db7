#include "codegen/passes/flops.hpp"

#include <fmt/format.h>

#include <map>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;

namespace {

Extent elements(const std::vector<Dim>& dims) {
  Extent product{1, 0};
  for (const Dim& dim : dims) {
    const Extent e = extent(dim);
    if (product.per_batch && e.per_batch)
      throw Error("the operations of a model are not linear in the batch, so they cannot be counted");
    product = {product.fixed * e.fixed, product.per_batch * e.fixed + product.fixed * e.per_batch};
  }
  return product;
}

Extent times(std::int64_t factor, Extent e) { return {factor * e.fixed, factor * e.per_batch}; }

Extent contraction(const Graph& g, const Node& n) {
  std::map<int, Dim> size;
  for (std::size_t k = 0; k < n.operands.size(); ++k)
    for (std::size_t d = 0; d < n.letters[k].size(); ++d) size[n.letters[k][d]] = g[n.operands[k]].shape[d];
  std::vector<Dim> all;
  bool sums = false;
  for (const auto& [letter, dim] : size) {
    all.push_back(dim);
    sums |= !ranges::contains(n.letters.back(), letter);
  }
  const int products = n.operands.size() == 2 ? 1 : 0;
  return times(products + (sums ? 1 : 0), elements(all));
}

}  // namespace

Extent flops(const Graph& g, const Node& n) {
  switch (row_of(n.op).flops) {
    case Flops::none:
      return {};
    case Flops::result:
      return elements(n.shape);
    case Flops::operand:
      return elements(g[n.operands[0]].shape);
    case Flops::contraction:
      return contraction(g, n);
    case Flops::decomposed:
      break;
  }
  throw Error(fmt::format("a {} has to be taken apart before its operations are counted", op_name(n.op)));
}

std::map<std::string, Extent> flops_by_module(const Graph& primitive) {
  std::map<std::string, Extent> modules;
  for (const Node& n : primitive.nodes) {
    const Extent once = flops(primitive, n);
    const int layers = primitive.regions[n.region].count;
    Extent& total = modules[n.path];
    total.fixed += layers * once.fixed;
    total.per_batch += layers * once.per_batch;
  }
  return modules;
}

Extent flops(const Graph& primitive) {
  Extent total;
  for (const auto& [path, module] : flops_by_module(primitive)) {
    total.fixed += module.fixed;
    total.per_batch += module.per_batch;
  }
  return total;
}

}  // namespace tessera::codegen
