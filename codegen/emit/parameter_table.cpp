#include "codegen/emit/parameter_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <vector>

#include "codegen/emit/entry.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

std::string parameter_tables(const ModelFiles& m) {
  // In declared order, layer by layer: the order in which people list a checkpoint.
  std::string table, start;
  std::map<int, std::vector<const ArenaEntry*>> by_region;
  std::vector<int> order;
  for (const graph::Node& n : m.forward.nodes) {
    if (n.op != graph::Op::parameter) continue;
    int group = n.region ? n.region : -static_cast<int>(order.size()) - 1;  // each top-level parameter on its own
    if (!by_region.contains(group)) order.push_back(group);
    by_region[group].push_back(&m.arena.find(n.name));
  }
  auto number = [](double v) {
    std::string text = fmt::format("{}", v);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  };
  for (int group : order)
    for (int layer = 0; layer < by_region[group].front()->count; ++layer)
      for (const ArenaEntry* e : by_region[group]) {
        std::vector<std::int64_t> shape;
        for (const Dim& d : e->shape) shape.push_back(d.value());
        const std::string row = fmt::format("    {{\"{}\", {}, {}, {{{}}}, {},", e->key_of(layer), shape.size(),
                                            e->decay ? 1 : 0, fmt::join(shape, ", "), e->at(layer));
        const std::string named = fmt::format("\"{}\"}},\n", to_string(e->shape));
        table += row + (row.size() + named.size() > 120 ? "\n     " : " ") + named;
        const char* kind = e->init.kind == graph::Init::Kind::constant  ? "Start::constant"
                           : e->init.kind == graph::Init::Kind::uniform ? "Start::uniform"
                                                                        : "Start::normal";
        start += fmt::format("    {{{}, {}, {}, {}}},\n", kind, number(e->init.a), number(e->init.b), e->reals);
      }
  std::string names;
  for (const std::string& layer : layers(m)) names += fmt::format("    \"{}\",\n", layer);
  std::string losses;
  for (const std::string& loss : m.forward.losses) losses += fmt::format("    \"{}\",\n", loss);
  if (!losses.empty() && trains(m.plans))
    losses = fmt::format("\nextern \"C\" const char* const {0}_losses[{1}_LOSSES] = {{\n{2}}};\n", m.name, m.upper(),
                         losses);
  else
    losses.clear();
  return fmt::format(R"cpp(extern "C" const tessera_parameter {0}_parameters[{1}_PARAMETERS] = {{
{2}}};

extern "C" const char* const {0}_layers[{1}_LAYERS] = {{
{4}}};
{5}
namespace {{

// How each parameter of the table starts: constant a, uniform in [a, b), or normal with mean a and deviation b.
struct Start {{
  enum Kind {{ constant, uniform, normal }} kind;
  double a, b;
  std::int64_t count;
}};
constexpr Start starts[{1}_PARAMETERS] = {{
{3}}};
)cpp",
                     m.name, m.upper(), table, start, names, losses);
}

}  // namespace tessera::codegen
