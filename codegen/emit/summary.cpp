#include "codegen/emit/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/emit/contract.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/plan/memory.hpp"

namespace tessera::codegen {

namespace {

/// 12345 as 12,345.
std::string grouped(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (width.size() <= c) width.push_back(0);
      width[c] = std::max(width[c], row[c].size());
    }
  std::string out;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) line += fmt::format(" {:<{}}", row[c], width[c]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

/// 64 + 45,824 * B
std::string polynomial(const Extent& e, const std::string& batch) {
  if (e.per_batch == 0) return grouped(e.fixed);
  const std::string linear = fmt::format("{} * {}", grouped(e.per_batch), batch);
  return e.fixed ? fmt::format("{} + {}", grouped(e.fixed), linear) : linear;
}

/// The images' first axis.
std::string batch_axis(const graph::Graph& g) {
  auto images = ranges::find_if(g.nodes, [](const graph::Node& n) { return n.op == graph::Op::input; });
  return to_string(images->shape.front());
}

/// Writes the rows of a graph's shape table.
class ShapeTable {
 public:
  explicit ShapeTable(const graph::Graph& g) : g_(g) {
    std::map<std::string, int> count;
    for (const graph::Node& n : g_.nodes) {
      std::string path = path_of(n), operation = operation_of(n);
      if (const int earlier = n.name.empty() ? count[path + "." + operation]++ : 0)
        operation += fmt::format(".{}", earlier + 1);
      paths_.push_back(std::move(path));
      operations_.push_back(std::move(operation));
    }
  }

  std::vector<ShapeRow> rows() const {
    std::vector<ShapeRow> rows;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      if (!has_row(n)) continue;
      const int layers = g_.regions[n.region].count;
      rows.push_back({static_cast<graph::NodeId>(i), n.name.empty() ? paths_[i] : n.name,
                      operations_[i] + read(i) + how(n), to_string(n.shape), layers});
    }
    return rows;
  }

 private:
  using Op = graph::Op;

  /// Parameters have a table of their own; the others stand where they are read.
  static bool has_row(const graph::Node& n) {
    return n.op != Op::parameter && n.op != Op::constant && n.op != Op::extent && n.op != Op::broadcast;
  }

  /// What enters a repeated block and what leaves it belong to the block.
  std::string path_of(const graph::Node& n) const {
    const graph::Node& inner = n.op == Op::carry_out ? g_[n.operands[0]] : n;
    if (inner.op == Op::carry) return g_.regions[inner.region].path;
    return n.path.empty() ? g_.name : n.path;
  }

  static std::string operation_of(const graph::Node& n) {
    if (n.op == Op::carry) return "enter";
    if (n.op == Op::carry_out) return "leave";
    return std::string(op_name(n.op));
  }

  /// A value as it is called in the row of node `reader`: without the path where that is the reader's own.
  std::string name(graph::NodeId id, std::size_t reader) const {
    const graph::Node& n = g_[id];
    if (n.op == Op::constant) return fmt::format("{}", n.value);
    if (n.op == Op::extent) return to_string(n.dim);
    if (n.op == Op::broadcast) {
      const std::string narrow = name(n.operands[0], reader);
      const std::vector<Dim>& shape = g_[n.operands[0]].shape;
      return shape.empty() ? narrow : fmt::format("{} {}", narrow, to_string(shape));
    }
    const std::string full = n.name.empty() ? paths_[at(id)] + "." + operations_[at(id)] : n.name;
    const std::string own = paths_[reader] + ".";
    return full.starts_with(own) && !full.starts_with(own + "{") ? full.substr(own.size()) : full;
  }

  std::string read(std::size_t reader) const {
    const graph::Node& n = g_.nodes[reader];
    std::vector<graph::NodeId> operands = n.operands;
    if (n.op == Op::carry_out) {  // of the last layer
      const graph::Region& region = g_.regions[g_[operands[0]].region];
      operands[0] = region.yields[ranges::find(region.carries, operands[0]) - region.carries.begin()];
    }
    std::vector<std::string> names;
    for (const graph::NodeId operand : operands) names.push_back(name(operand, reader));
    return names.empty() ? "" : fmt::format("({})", fmt::join(names, ", "));
  }

  /// What a shape does not tell.
  std::string how(const graph::Node& n) const {
    switch (n.op) {
      case Op::einsum: {
        std::vector<std::string> sides;
        for (const std::vector<int>& letters : n.letters) sides.push_back(letters_of(letters));
        const std::string result = sides.back();
        sides.pop_back();
        return fmt::format(" {} -> {}", fmt::join(sides, ", "), result);
      }
      case Op::rearrange:
        return " " + print(n.rearrangement);
      case Op::slice:
        return fmt::format(" from {}", n.offset);
      case Op::unfold:
      case Op::fold:
        return fmt::format(" from {} by {}, {} apart", n.offset, n.stride, n.dilation);
      case Op::dropout:
        return fmt::format(" of {}", n.value);
      case Op::softmax:
      case Op::log_softmax:
      case Op::layer_norm:
      case Op::reduce_sum:
      case Op::reduce_max: {
        std::vector<Dim> over;
        for (const int axis : n.axes) over.push_back(g_[n.operands[0]].shape[axis]);
        return " over " + to_string(over);
      }
      case Op::broadcast:
      case Op::integers:
      case Op::one_hot:
      case Op::concat:
      case Op::cache:
      case Op::stop_gradient:
      case Op::gradient:
      case Op::cross_entropy:
      case Op::gather:
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        TESSERA_LEAF_OPS(TESSERA_OP_CASE)
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
        break;
    }
    return "";
  }

  const graph::Graph& g_;
  std::vector<std::string> paths_, operations_;  ///< by node; the operation with a number where the path has several
};

}  // namespace

std::vector<ShapeRow> shape_rows(const graph::Graph& g) { return ShapeTable(g).rows(); }

std::string shape_table(const graph::Graph& g) {
  std::vector<std::vector<std::string>> rows;
  for (const ShapeRow& row : shape_rows(g))
    rows.push_back({row.path, row.step, row.shape, row.layers > 1 ? fmt::format("x {}", row.layers) : ""});
  std::string out = fmt::format("{}\n\nshapes\n{}\nparameters\n", g.name, table(rows));
  rows.clear();
  std::int64_t total = 0;
  for (const graph::Node& n : g.nodes) {
    if (n.op != graph::Op::parameter) continue;
    std::int64_t reals = 1;
    for (const Dim& d : n.shape) reals *= d.value();
    const int layers = g.regions[n.region].count;
    total += reals * layers;
    rows.push_back({n.name, to_string(n.shape), grouped(reals),
                    !n.trained ? "frozen"
                    : n.decay  ? "decays"
                               : "",
                    layers > 1 ? fmt::format("x {}", layers) : ""});
  }
  return out + table(rows) + fmt::format("  {} in all\n", grouped(total));
}

std::string summary(const ModelFiles& m) {
  const bool training = trains(m.plans);
  const std::int64_t real_bytes = m.real == "double" ? 8 : 4, batch = training ? m.forward.recipe.batch : 1;
  const std::string symbol = batch_axis(m.forward);
  std::vector<std::vector<std::string>> rows{
      {"", fmt::format("{} images", symbol), fmt::format("{} = {}", symbol, batch)}};
  auto row = [&](const std::string& what, const Extent& e) {
    rows.push_back({what, polynomial(e, symbol), grouped(e.at(batch))});
  };
  const Contract c = contract(m);
  const bool groups = training && m.plan(ProgramKind::loss_and_gradients).program.groups;
  const auto train_row = [&](const std::string& what, const Extent& e) {
    const Extent& program = m.plan(ProgramKind::loss_and_gradients).scratch;
    const Extent scratch{program.fixed * real_bytes, program.per_batch * real_bytes};
    const Extent of_batch{e.fixed + scratch.fixed, e.per_batch};
    const std::int64_t at_once = groups ? (batch + batch_chunks - 1) / batch_chunks : batch;
    rows.push_back(
        {what,
         polynomial(of_batch, symbol) + fmt::format(" + {} * {}", grouped(scratch.per_batch), groups ? "A" : symbol),
         grouped(of_batch.at(batch) + scratch.per_batch * at_once)});
  };
  row("parameters", {c.parameters, 0});
  row("parameter bytes", {c.parameter_bytes, 0});
  if (training) row("optimizer bytes", {c.optimizer_bytes, 0});
  for (const Plan& p : m.plans)
    if (traits_of(p.program.kind).trains)
      train_row("loss_and_gradients scratch bytes", {});
    else if (p.scratch != Extent{})
      row(p.program.name + " scratch bytes", {p.scratch.fixed * real_bytes, p.scratch.per_batch * real_bytes});
  row("forward bytes in all", c.forward_bytes);
  if (training) train_row("training step bytes in all", c.train_bytes);
  row("forward FLOPs", c.forward_flops);
  if (training) row("training step FLOPs", c.train_flops);
  return shape_table(m.forward) + "\ncontract\n" + table(rows) +
         (groups
              ? fmt::format("  A: the images of a batch that are worked on at once, at least a {}th of it, as here\n",
                            batch_chunks)
              : "");
}

}  // namespace tessera::codegen
