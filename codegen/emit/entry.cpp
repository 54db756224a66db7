#include "codegen/emit/entry.hpp"

#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>

#include "codegen/passes/inspect.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {

std::string upper(std::string_view text) {
  std::string capital(text);
  for (char& c : capital)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return capital;
}

bool trains(const std::vector<Plan>& plans) {
  return ranges::any_of(plans, [](const Plan& plan) { return differentiates(plan.program); });
}

bool takes_tokens(const graph::Graph& program) {
  return ranges::any_of(program.nodes, [](const graph::Node& n) {
    return n.op == graph::Op::input && n.name == "tokens" && n.type == graph::Type::integer;
  });
}
std::string input_of(const graph::Graph& program) { return takes_tokens(program) ? "tokens" : "images"; }

std::string compared_with(const graph::Graph& program) {
  if (program.recipe.phase) return "factor";
  for (const char* name : {"targets", "output_gradients"})
    if (ranges::any_of(program.nodes, [&](const graph::Node& n) { return n.op == graph::Op::input && n.name == name; }))
      return name;
  return "labels";
}
bool takes_targets(const graph::Graph& declared) {
  return !softens(declared.recipe) && compared_with(declared) == "targets";
}
bool takes_output_gradients(const graph::Graph& declared) { return compared_with(declared) == "output_gradients"; }
bool takes_labels(const graph::Graph& declared) {
  return !declared.recipe.phase && !takes_targets(declared) && !takes_output_gradients(declared);
}

bool takes_random(const KernelProgram& program) {
  return ranges::any_of(program.graph.nodes, [](const graph::Node& n) { return n.op == graph::Op::keep; });
}

bool has_attention(const KernelProgram& program) {
  return ranges::any_of(program.graph.outputs, [](const graph::Output& o) { return is_attention(o.name); });
}

bool gives(const KernelProgram& program, const std::string& output) {
  return ranges::contains(program.graph.outputs, output, &graph::Output::name);
}

bool reads_packed(const KernelProgram& program) {
  return ranges::any_of(program.tensors, [](const Tensor& t) { return t.storage == Storage::packed; });
}

bool takes_parameters(const KernelProgram& program) {
  return !reads_packed(program) || ranges::any_of(program.kernels, [&](const Kernel& k) {
    return ranges::any_of(k.expressions, [&](const Expression& e) {
      return e.kind == Expression::Kind::load && program.tensors[e.access.tensor].storage == Storage::parameter;
    });
  });
}

std::vector<tree::Parameter> pack_parameters(const std::string& real) {
  return {{"const " + real + "*", "parameters"}, {real + "*", "packed"}};
}

std::vector<tree::Parameter> update_and_pack_parameters(const KernelProgram& update, const std::string& real) {
  std::vector<tree::Parameter> p = entry_parameters(update, real);
  p.resize(p.size() - 2);  // not a stretch
  p.insert(p.begin() + 1, {real + "*", "packed"});
  return p;
}

std::vector<tree::Parameter> entry_parameters(const KernelProgram& of, const std::string& real) {
  const ProgramTraits& program = traits_of(of.kind);
  const std::string in = "const " + real + "*", out = real + "*";
  if (program.updates) {
    std::vector<tree::Parameter> p{{out, "parameters"}};
    if (reads_packed(of)) p.push_back({out, "packed"});
    p.push_back({in, "gradients"});
    for (const std::string& state : optimizer_state(of.graph.recipe)) p.push_back({out, state});
    for (const std::string& number : optimizer_numbers(of.graph.recipe)) p.push_back({in, number});
    p.push_back({"const std::int64_t", "first"});
    p.push_back({"const std::int64_t", "last"});
    return p;
  }
  std::vector<tree::Parameter> p;
  if (takes_parameters(of)) p.push_back({in, "parameters"});
  if (reads_packed(of)) p.push_back({in, "packed"});
  if (program.steps) {
    p.push_back({out, "cache"});
    p.push_back({"const std::int32_t*", "position"});
  }
  p.push_back({takes_tokens(of.graph) ? "const std::int32_t*" : in, input_of(of.graph)});
  if (program.inspects) {
    p.push_back({"const std::int64_t", "batch"});
    if (has_attention(of)) p.push_back({out, "maps"});
    p.push_back({out, "magnitudes"});
    p.push_back({out, "scratch"});
    return p;
  }
  if (program.embeds) {
    p.push_back({"const std::int64_t", "batch"});
    for (const graph::Output& o : of.graph.outputs) p.push_back({out, o.name});
    p.push_back({out, "scratch"});
    return p;
  }
  if (program.has_loss) {
    const std::string wanted = compared_with(of.graph);
    p.push_back({wanted == "labels" ? "const std::int32_t*" : in, wanted});
  }
  if (takes_random(of)) p.push_back({"const std::int32_t*", "random"});
  p.push_back({"const std::int64_t", "batch"});
  if (of.groups) p.push_back({"const std::int64_t", "at_once"});
  p.push_back({out, "outputs"});
  if (gives(of, "losses")) p.push_back({out, "losses"});
  if (program.has_loss) p.push_back({out, "loss"});
  if (!program.gradients.empty()) p.push_back({out, std::string(program.gradients)});
  p.push_back({out, "scratch"});
  return p;
}

}  // namespace tessera::codegen
