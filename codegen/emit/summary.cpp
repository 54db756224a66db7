// The shape table that people read and that is compared in review.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <range/v3/algorithm/find_if.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/emit/model.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

const Plan& ModelFiles::plan(const std::string& program) const {
  auto at = ranges::find_if(plans, [&](const Plan& p) { return p.program.name == program; });
  if (at == plans.end()) throw Error(fmt::format("there is no program called {}", program));
  return *at;
}

std::vector<std::int64_t> ModelFiles::image_shape() const {
  auto at = ranges::find_if(
      forward.nodes, [](const graph::Node& n) { return n.op == graph::Op::input && n.type == graph::Type::real; });
  if (at == forward.nodes.end()) throw Error(fmt::format("{} has no input", name));
  std::vector<std::int64_t> shape;
  for (std::size_t d = 1; d < at->shape.size(); ++d) shape.push_back(at->shape[d].value());
  return shape;
}

std::int64_t ModelFiles::classes() const {
  for (const graph::Output& o : forward.outputs)
    if (o.kind == graph::Output::Kind::value) return forward[o.node].shape.back().value();
  throw Error(fmt::format("{} has no outputs", name));
}

std::string ModelFiles::upper() const {
  std::string text = name;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

AttentionMaps attention_maps(const ModelFiles& m) {
  AttentionMaps a;
  if (m.maps.outputs.empty()) return a;
  for (const graph::Output& o : m.maps.outputs) {
    const graph::Node& n = m.maps[o.node];
    const std::vector<Dim>& shape = n.shape;
    a.layers = m.maps.regions[static_cast<std::size_t>(n.region)].count;
    a.heads += shape.size() == 4 ? shape[1].value() : 1;
    a.rows = shape[shape.size() - 2].value();
    a.columns = shape.back().value();
  }
  return a;
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

bool worth_showing(const graph::Node& n) {
  switch (n.op) {
    case graph::Op::constant:
    case graph::Op::extent:
    case graph::Op::broadcast:
    case graph::Op::parameter:
    case graph::Op::carry:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::string summary(const ModelFiles& model) {
  const graph::Graph& g = model.forward;
  std::string out = fmt::format("{}\n\nshapes\n", model.name);
  std::vector<std::vector<std::string>> rows;
  for (const graph::Node& n : g.nodes) {
    if (!worth_showing(n)) continue;
    const graph::Region& region = g.regions[static_cast<std::size_t>(n.region)];
    std::string path = n.path.empty() ? model.name : n.path;
    std::string times = region.count > 1 ? fmt::format("x {}", region.count) : "";
    rows.push_back({n.name.empty() ? path : n.name, std::string(op_name(n.op)), to_string(n.shape), times});
  }
  out += table(rows) + "\nparameters\n";
  rows.clear();
  std::int64_t total = 0;
  for (const graph::Node& n : g.nodes) {
    if (n.op != graph::Op::parameter) continue;
    std::int64_t reals = 1;
    for (const Dim& d : n.shape) reals *= d.value();
    std::int64_t count = g.regions[static_cast<std::size_t>(n.region)].count;
    total += reals * count;
    rows.push_back({n.name, to_string(n.shape), grouped(reals), count > 1 ? fmt::format("x {}", count) : ""});
  }
  out += table(rows);
  out += fmt::format("  {} in all, {} with padding\n\nmemory in bytes, for batch images at once\n", grouped(total),
                     grouped(model.arena.reals));
  const std::int64_t real_bytes = model.real == "double" ? 8 : 4;
  rows = {{"parameters", grouped(real_bytes * model.arena.reals)},
          {"gradients", grouped(real_bytes * model.arena.reals)},
          {"optimizer", grouped(2 * real_bytes * model.arena.reals)}};
  for (const Plan& p : model.plans) {
    if (p.scratch == Extent{}) continue;
    auto bytes = [&](Extent e) { return to_string(Extent{e.fixed * real_bytes, e.per_batch * real_bytes}); };
    rows.push_back(
        {p.program.name + " scratch", bytes(p.scratch), "at least " + bytes(p.lower_bound) + " are live at once"});
  }
  return out + table(rows);
}

}  // namespace tessera::codegen
