#include "codegen/passes/print.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <range/v3/range/conversion.hpp>
#include <range/v3/view/drop_last.hpp>
#include <range/v3/view/transform.hpp>

#include "codegen/extent.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
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

/// What stands between an op's name and its operands.
std::string attributes(const Node& n) {
  switch (n.op) {
    case Op::input:
      return fmt::format(" \"{}\"{}", n.name, n.type == graph::Type::integer ? " integers" : "");
    case Op::parameter:
      return fmt::format(" \"{}\"{}", n.name, n.decay ? "" : " undecayed");
    case Op::table:
      return fmt::format(" \"{}\"", n.name);
    case Op::constant:
      return fmt::format(" {}", n.value);
    case Op::extent:
      return fmt::format(" {}", to_string(n.dim));
    case Op::layer_norm:
      return fmt::format(" axes={} epsilon={}", n.axes, n.value);
    case Op::slice:
      return fmt::format(" axis={} offset={}", n.axes[0], n.offset);
    case Op::keep:
      return fmt::format(" {} rate={}", n.offset, n.value);
    case Op::dropout:
      return fmt::format(" {} rate={} axes={}", n.offset, n.value, n.axes);
    case Op::concat:
    case Op::log_softmax:
    case Op::softmax:
      return fmt::format(" axis={}", n.axes[0]);
    case Op::broadcast:
    case Op::reduce_sum:
    case Op::reduce_max:
      return fmt::format(" axes={}", n.axes);
    case Op::rearrange: {
      std::vector<std::string> extents;
      for (std::size_t i = 0; i < n.rearrangement.atoms.size(); ++i)
        extents.push_back(fmt::format("{}:{}", letters_of({static_cast<int>(i)}), to_string(n.rearrangement.atoms[i])));
      return fmt::format(" \"{}\" {}", print(n.rearrangement), fmt::join(extents, " "));
    }
    case Op::einsum: {
      auto texts = n.letters | ranges::views::transform(letters_of) | ranges::to<std::vector<std::string>>();
      return fmt::format(" \"{}->{}\"", fmt::join(texts | ranges::views::drop_last(1), ","), texts.back());
    }
    default:
      return "";
  }
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
    if (n.region != region && n.region != 0) text += head(graph.regions[static_cast<std::size_t>(n.region)], n.region);
    region = n.region;
    text += fmt::format("{}%{} = {}{}{}{} : {}{}\n", region ? "  " : "", i, op_name(n.op), attributes(n),
                        n.operands.empty() ? "" : " ", ids(n.operands), to_string(n.shape),
                        n.path.empty() ? "" : "   # " + n.path);
  }
  for (const Output& o : graph.outputs) text += fmt::format("{} \"{}\" = %{}\n", kind(o.kind), o.name, o.node);
  return text;
}

}  // namespace tessera::codegen
