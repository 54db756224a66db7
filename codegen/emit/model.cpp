#include "codegen/emit/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>

#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/inspect.hpp"
#include "codegen/passes/op.hpp"
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
                     name_of(precision), quantizes(precision) ? " with a parameter" : "", least_n);
}

AttentionMaps attention_maps(const ModelFiles& m) {
  AttentionMaps a;
  std::set<int> regions;
  for (const graph::Output& o : m.inspected.outputs) {
    if (!is_attention(o.name)) continue;
    const graph::Node& n = m.inspected[o.node];
    const std::vector<Dim>& shape = n.shape;
    if (regions.insert(n.region).second) a.layers += m.inspected.regions[n.region].count;
    if (regions.size() == 1) a.heads += shape.size() == 4 ? shape[1].value() : 1;
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
      c.reals = plan.layouts[id].stride[0] / values_in_real(t.element);
      c.element = t.element;
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
      if (o.name == "features" && shape.size() == 4) e.layers = middle, e.features *= middle * shape[2].value();
      if (o.name == "tokens") e.tokens = middle, e.width = last;
      if (o.name == "pooling") e.heads = middle, e.keys = last;
    }
  }
  return e;
}

std::string embedding_entry(const ModelFiles& m) {
  const Embedding e = embedding_of(m);
  return fmt::format("    .embed = {}_embed,\n    .embedding = {{{}, {}, {}, {}, {}{}}},\n", m.name, e.features,
                     e.tokens, e.width, e.heads, e.keys, e.layers ? fmt::format(", {}", e.layers) : "");
}

bool tells_depths(const ModelFiles& m) { return m.forward.depth != graph::Depth::none; }

std::string depth_entry(const ModelFiles& m) {
  if (!tells_depths(m)) return "";
  return fmt::format("    .depth = Depth::{},\n", m.forward.depth == graph::Depth::metres ? "metres" : "inverse");
}

std::string shape_of_features(const Embedding& e) {
  return e.layers ? fmt::format("{} layers, {}, {}", e.layers, e.tokens, e.width) : fmt::format("{}", e.features);
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
                     recipe.input_fit == graph::Recipe::Fit::squash ? ", .fit = Fit::squash"
                     : recipe.input_fit == graph::Recipe::Fit::pad  ? ", .fit = Fit::pad"
                                                                    : "");
}

std::uint64_t hash_text(const std::string& text) {
  std::uint64_t hash = 14695981039346656037u;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

bool ends_in_softmax(const graph::Graph& g) {
  for (const graph::Output& o : g.outputs)
    if (o.kind == graph::Output::Kind::value) return g[o.node].op == graph::Op::softmax;
  return false;
}

std::string patches_entry(const ModelFiles& m) {
  const PatchGrid grid = patch_grid(m);
  return grid.rows == 0 ? "" : fmt::format("    .patches = {{{}, {}}},\n", grid.rows, grid.columns);
}

}  // namespace tessera::codegen
