// The shape table that people read and that is compared in review.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/emit/entry.hpp"
#include "codegen/emit/model.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/plan/memory.hpp"

namespace tessera::codegen {

const Plan& ModelFiles::plan(ProgramKind kind) const {
  auto at = ranges::find_if(plans, [&](const Plan& p) { return p.program.kind == kind; });
  if (at == plans.end()) throw Error(fmt::format("there is no program called {}", name_of(kind)));
  return *at;
}

std::vector<std::int64_t> ModelFiles::image_shape() const {
  const bool tokens = takes_tokens(forward);
  const auto at = ranges::find_if(forward.nodes, [&](const graph::Node& n) {
    return n.op == graph::Op::input && (tokens ? n.name == "tokens" : n.type == graph::Type::real);
  });
  if (at == forward.nodes.end()) throw Error(fmt::format("{} has no input", name));
  std::vector<std::int64_t> shape;
  for (std::size_t d = 1; d < at->shape.size(); ++d) shape.push_back(at->shape[d].value());
  return shape;
}

std::int64_t ModelFiles::image_reals() const {
  std::int64_t reals = 1;
  for (const std::int64_t size : image_shape()) reals *= size;
  return reals;
}

std::vector<std::int64_t> ModelFiles::output_shape() const {
  const auto at = ranges::find(forward.outputs, graph::Output::Kind::value, &graph::Output::kind);
  if (at == forward.outputs.end()) throw Error(fmt::format("{} has no outputs", name));
  const std::vector<Dim>& dims = forward[at->node].shape;
  if (dims.size() < 2) throw Error(fmt::format("the outputs of {} have no axis beside the batch", name));
  std::vector<std::int64_t> shape;
  for (std::size_t d = 1; d < dims.size(); ++d) shape.push_back(dims[d].value());
  return shape;
}

std::int64_t ModelFiles::output_reals() const {
  std::int64_t reals = 1;
  for (const std::int64_t size : output_shape()) reals *= size;
  return reals;
}

std::vector<std::int64_t> ModelFiles::target_shape() const {
  const auto at = ranges::find(forward.nodes, compared_with(forward), &graph::Node::name);
  if (at == forward.nodes.end()) return output_shape();
  std::vector<std::int64_t> shape;
  for (std::size_t d = 1; d < at->shape.size(); ++d) shape.push_back(at->shape[d].value());
  return shape;
}

std::int64_t ModelFiles::target_reals() const {
  std::int64_t reals = 1;
  for (const std::int64_t size : target_shape()) reals *= size;
  return reals;
}

std::int64_t ModelFiles::labels_of_image() const {
  std::int64_t count = 1;
  for (const graph::Node& n : forward.nodes)
    if (n.op == graph::Op::input && n.name == "labels")
      for (std::size_t d = 1; d < n.shape.size(); ++d) count *= n.shape[d].value();
  return count;
}

std::int64_t ModelFiles::classes() const {
  for (const graph::Node& n : forward.nodes)
    if ((n.op == graph::Op::cross_entropy || n.op == graph::Op::one_hot) &&
        forward[n.operands.back()].type == graph::Type::integer && forward[n.operands.back()].name != "tokens")
      return (n.op == graph::Op::one_hot ? n : forward[n.operands[0]]).shape.back().value();
  return output_reals();
}

std::int64_t ModelFiles::codes() const {
  std::vector<bool> tokens;  // by node: a view of them
  std::int64_t fewest = std::int64_t{1} << 31;
  for (const graph::Node& n : forward.nodes) {
    const auto reads = [&](std::size_t k) { return tokens[static_cast<std::size_t>(n.operands[k])]; };
    const bool view = !n.operands.empty() && n.type == graph::Type::integer && reads(0);
    if (n.op == graph::Op::one_hot && reads(0)) fewest = std::min(fewest, n.shape.back().value());
    if (n.op == graph::Op::gather && reads(1)) fewest = std::min(fewest, forward[n.operands[0]].shape[0].value());
    tokens.push_back(view || (n.op == graph::Op::input && n.name == "tokens"));
  }
  return fewest;
}

std::string ModelFiles::upper() const { return codegen::upper(name); }

std::string ModelFiles::why_precision_is_idle() const {
  const auto rounds = [](const Plan& plan) {
    return ranges::any_of(plan.program.kernels, [](const Kernel& k) { return k.gemm.dtype != DType::real; });
  };
  if (precision == Precision::fp32 || ranges::any_of(plans, rounds)) return "";
  return fmt::format("the precision {} changes nothing: no matrix product{} has {} columns and as deep sums",
                     name_of(precision), precision == Precision::int8 ? " with a parameter" : "", least_n);
}

AttentionMaps attention_maps(const ModelFiles& m) {
  AttentionMaps a;
  for (const graph::Output& o : m.inspected.outputs) {
    if (!is_attention(o.name)) continue;
    const graph::Node& n = m.inspected[o.node];
    const std::vector<Dim>& shape = n.shape;
    a.layers = m.inspected.regions[n.region].count;
    a.heads += shape.size() == 4 ? shape[1].value() : 1;
    a.rows = shape[shape.size() - 2].value();
    a.columns = shape.back().value();
  }
  return a;
}

Cache cache_of(const ModelFiles& m) {
  Cache c;
  for (const Plan& plan : m.plans) {
    if (!traits_of(plan.program.kind).steps) continue;
    int region = -1;
    for (const TensorId id : cached(plan.program)) {
      const Tensor& t = plan.program.tensors[id];
      const std::string shape = to_string(std::vector<Dim>(t.shape.begin() + 1, t.shape.end()));
      c.reals += plan.layouts[id].size.per_batch * t.slots;
      if (t.region != 0 && t.region == region)
        c.parts.back() += " and " + shape;
      else
        c.parts.push_back(t.slots > 1 ? fmt::format("{} layers of {}", t.slots, shape) : shape);
      region = t.region;
    }
  }
  return c;
}

Embedding embedding_of(const ModelFiles& m) {
  Embedding e;
  for (const Plan& plan : m.plans) {
    if (!traits_of(plan.program.kind).embeds) continue;
    for (const graph::Output& o : plan.program.graph.outputs) {
      const std::vector<Dim>& shape = plan.program.graph[o.node].shape;
      const std::int64_t last = shape.back().value(), middle = shape[1].value();
      if (o.name == "features") e.features = last;
      if (o.name == "tokens") e.tokens = middle, e.width = last;
      if (o.name == "pooling") e.heads = middle, e.keys = last;
    }
  }
  return e;
}

std::vector<std::string> layers(const ModelFiles& m) {
  std::vector<std::string> names, run;
  int region = 0;
  const auto end_run = [&] {
    for (int layer = 0; layer < m.inspected.regions[region].count; ++layer)
      for (const std::string& path : run) names.push_back(of_layer(path, layer));
    run.clear();
  };
  for (const graph::Output& o : m.inspected.outputs) {
    if (is_attention(o.name)) continue;
    const graph::Node& n = m.inspected[o.node];
    if (n.region != region) end_run();
    region = n.region;
    run.push_back(n.path.empty() ? m.name : n.path);
  }
  end_run();
  return names;
}

PatchGrid patch_grid(const ModelFiles& m) {
  // Patches are cut where a rearrange of the images, or of a part of them, splits both height and width:
  // b c (rows p) (columns q) -> ...
  const auto of_images = [&](graph::NodeId node) {
    while (m.forward[node].op == graph::Op::slice) node = m.forward[node].operands[0];
    return m.forward[node].op == graph::Op::input;
  };
  for (const graph::Node& n : m.forward.nodes) {
    if (n.op != graph::Op::rearrange || !of_images(n.operands[0])) continue;
    const graph::Rearrangement& r = n.rearrangement;
    if (r.from.size() != 4 || r.from[2].size() != 2 || r.from[3].size() != 2) continue;
    const auto outer = [&](std::size_t dim) { return r.atoms[r.from[dim][0]].value(); };
    return {outer(2), outer(3)};
  }
  return {};
}

std::string preprocessing(const graph::Recipe& recipe) {
  return fmt::format("{{.mean = {{{}}}, .deviation = {{{}}}, .crop = {}{}{}}}", fmt::join(recipe.input_mean, ", "),
                     fmt::join(recipe.input_deviation, ", "), recipe.input_crop,
                     recipe.input_bilinear ? ", .interpolation = Interpolation::bilinear" : "",
                     recipe.input_squash ? ", .squash = true" : "");
}

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

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
    return full.starts_with(own) && !full.starts_with(own + "{}") ? full.substr(own.size()) : full;
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
    rows.push_back({n.name, to_string(n.shape), grouped(reals), n.decay ? "decays" : "",
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
