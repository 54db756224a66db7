#include "codegen/passes/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Output;
using graph::Region;

namespace {

std::string ids(const std::vector<NodeId>& nodes) {
  auto texts = nodes | ranges::views::transform([](NodeId id) { return fmt::format("%{}", id); });
  return fmt::format("{}", fmt::join(texts | ranges::to<std::vector>(), ", "));
}

/// One side of a rearrangement: "a (b c) 1".
std::string side(const std::vector<std::vector<int>>& dims) {
  std::vector<std::string> texts;
  for (const std::vector<int>& atoms : dims) {
    auto names = atoms | ranges::views::transform([](int atom) { return letters_of({atom}); });
    const std::string text = fmt::format("{}", fmt::join(names | ranges::to<std::vector>(), " "));
    texts.push_back(atoms.empty() ? "1" : atoms.size() == 1 ? text : fmt::format("({})", text));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string head(const Region& r, int number) {
  std::string text = fmt::format("region {} \"{}\" x{}", number, r.path, r.count);
  if (r.reversed) text += " reversed";
  if (r.mirror != graph::none) text += fmt::format(" mirrors {}", r.mirror);
  return fmt::format("{}: carries {}, yields {}\n", text, ids(r.carries), ids(r.yields));
}

std::string_view kind(Output::Kind kind) {
  switch (kind) {
    case Output::Kind::value:
      return "value";
    case Output::Kind::loss:
      return "loss";
    case Output::Kind::gradient:
      return "gradient";
  }
  return "";
}

}  // namespace

std::string print(const graph::Rearrangement& r) { return fmt::format("{} -> {}", side(r.from), side(r.to)); }

std::string print(const Graph& graph) {
  std::string text = fmt::format("graph \"{}\"\n", graph.name);
  int region = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& n = graph.nodes[i];
    if (n.region != region && n.region != 0) text += head(graph.regions[n.region], n.region);
    region = n.region;
    text += fmt::format("{}%{} = {}{}{}{} : {}{}\n", region ? "  " : "", i, op_name(n.op), attributes_of(n),
                        n.operands.empty() ? "" : " ", ids(n.operands), to_string(n.shape),
                        n.path.empty() ? "" : "   # " + n.path);
  }
  for (const Output& o : graph.outputs) text += fmt::format("{} \"{}\" = %{}\n", kind(o.kind), o.name, o.node);
  return text;
}

}  // namespace tessera::codegen
