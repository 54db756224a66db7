// NAME.cpp: the C API over the kernels. Parameter table, starting values, choice of instruction set, argument checks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

namespace {

/// "text" as a C++ string literal, one source line for each line of text.
std::string literal(const std::string& text) {
  std::string out, line;
  auto flush = [&] {
    out += "\n    \"" + line + "\"";
    line.clear();
  };
  for (char c : text) {
    if (c == '"' || c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
      flush();
    } else {
      line += c;
    }
  }
  if (!line.empty() || out.empty()) flush();
  return out;
}

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
        table += fmt::format("    {{\"{}\", {}, {}, {{{}}}, {}}},\n", e->key_of(layer), shape.size(), e->decay ? 1 : 0,
                             fmt::join(shape, ", "), e->at(layer));
        const char* kind = e->init.kind == graph::Init::Kind::constant  ? "Start::constant"
                           : e->init.kind == graph::Init::Kind::uniform ? "Start::uniform"
                                                                        : "Start::normal";
        start += fmt::format("    {{{}, {}, {}, {}}},\n", kind, number(e->init.a), number(e->init.b), e->reals);
      }
  return fmt::format(R"cpp(extern "C" const tessera_parameter {0}_parameters[{1}_PARAMETERS] = {{
{2}}};

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
                     m.name, m.upper(), table, start);
}

std::string isa_choice(const ModelFiles& m) {
  std::string names, supported;
  std::size_t widest = m.targets.size();
  for (std::size_t i = 0; i < widest; ++i) {
    const std::string& n = m.targets[i].name;
    names += fmt::format("{}\"{}\"", i ? ", " : "", n);
    std::string test =
        n == "avx2" ? "__builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\")"
        : n == "avx512"
            ? "__builtin_cpu_supports(\"avx512f\") && __builtin_cpu_supports(\"avx512dq\") &&\n"
              "             __builtin_cpu_supports(\"avx512bw\") && __builtin_cpu_supports(\"avx512vl\") &&\n"
              "             __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\")"
            : "";
    if (!test.empty()) supported += fmt::format("    case {}:\n      return {};\n", i, test);
  }
  std::string body = supported.empty() ? "  return isa == 0;\n"
                                       : fmt::format(R"cpp(#if defined(__x86_64__)
  switch (isa) {{
    case 0:
      return true;
{}    default:
      return false;
  }}
#else
  return isa == 0;
#endif
)cpp",
                                                     supported);
  return fmt::format(R"cpp(
constexpr const char* isa_names[] = {{{}}};
constexpr int isa_count = {};

bool runs_here(int isa) {{
{}}}

// The kernels to use: what TESSERA_ISA names, else the widest that runs here; -1 when that is not to be had.
int choose_isa() {{
  if (const char* wanted = std::getenv("TESSERA_ISA"); wanted && *wanted) {{
    for (int isa = 0; isa < isa_count; ++isa)
      if (std::strcmp(wanted, isa_names[isa]) == 0) return runs_here(isa) ? isa : -1;
    return -1;
  }}
  for (int isa = isa_count - 1; isa > 0; --isa)
    if (runs_here(isa)) return isa;
  return 0;
}}
)cpp",
                     names, widest, body);
}

/// switch (choose_isa()) over the kernels of one program.
std::string dispatch(const ModelFiles& m, const std::string& program, const std::vector<std::string>& arguments) {
  std::string cases;
  bool wide = false;
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    if (m.targets[i].name != "scalar" && !wide) {
      cases += "#if defined(__x86_64__)\n";
      wide = true;
    }
    std::vector<tree::Expr> passed;
    for (const std::string& a : arguments) passed.push_back(tree::name(a));
    const tree::Block call{
        tree::evaluate(tree::call(fmt::format("{}_{}_{}", m.name, program, m.targets[i].name), passed))};
    cases += fmt::format("    case {}:\n{}      return {}_OK;\n", i, tree::print(call, 3), m.upper());
  }
  if (wide) cases += "#endif\n";
  return fmt::format("  switch (choose_isa()) {{\n{}    default:\n      return {}_ERROR_ISA;\n  }}\n", cases,
                     m.upper());
}

/// The body of an entry point that runs one program: checks, then kernels, then `after`.
std::string run_program(const ModelFiles& m, const tree::Function& f, const std::string& program) {
  const std::string u = m.upper();
  std::string nulls, checks;
  std::vector<std::string> arguments;
  for (const tree::Parameter& p : f.parameters) {
    if (p.type.ends_with("*")) nulls += (nulls.empty() ? "!" : " || !") + p.name;
    arguments.push_back(p.name == "scratch" ? fmt::format("static_cast<{}*>(scratch)", m.real) : p.name);
    if (p.name == "batch") checks += fmt::format("  if (batch < 1) return {}_ERROR_BATCH;\n", u);
    if (p.name == "gradients") checks += "  zero_gaps(gradients);\n";
  }
  for (const tree::Parameter& p : f.parameters)
    if (p.name == "labels") checks += fmt::format("  if (!labels_fit(labels, batch)) return {}_ERROR_LABEL;\n", u);
  return fmt::format("  if ({}) return {}_ERROR_NULL;\n", nulls, u) + checks + dispatch(m, program, arguments);
}

std::string body_of(const ModelFiles& m, const tree::Function& f) {
  const std::string n = m.name, u = m.upper(), r = m.real, what = f.name.substr(n.size() + 1);
  const graph::Recipe& recipe = m.forward.recipe;
  if (what == "error")
    return fmt::format(R"cpp(  switch (code) {{
    case {0}_OK:
      return "no error";
    case {0}_ERROR_NULL:
      return "a pointer is null";
    case {0}_ERROR_BATCH:
      return "the batch must hold at least one image";
    case {0}_ERROR_LABEL:
      return "a label is not in [0, {1})";
    case {0}_ERROR_ISA:
      return "TESSERA_ISA names kernels that do not exist or that this processor cannot run";
    case {0}_ERROR_STEP:
      return "steps are counted from 1";
    default:
      return "unknown error code";
  }}
)cpp",
                       u, m.classes());
  if (what == "isa") return "  const int isa = choose_isa();\n  return isa < 0 ? \"\" : isa_names[isa];\n";
  if (what == "summary") return "  return" + literal(summary(m)) + ";\n";
  if (what == "pack") return fmt::format("  return parameters && packed ? {0}_OK : {0}_ERROR_NULL;\n", u);
  if (what == "init")
    return fmt::format(R"cpp(  if (!parameters) return {1}_ERROR_NULL;
  zero_gaps(parameters);
  for (std::uint64_t p = 0; p < {1}_PARAMETERS; ++p) {{
    const Start& start = starts[p];
    {2}* const to = parameters + {0}_parameters[p].offset;
    for (std::int64_t i = 0; i < start.count; ++i) {{
      const Words random = philox(static_cast<std::uint64_t>(i), p, seed);
      const double u = (random.word[0] >> 8) * 0x1p-24, v = ((random.word[1] >> 8) + 1) * 0x1p-24;
      if (start.kind == Start::constant) to[i] = static_cast<{2}>(start.a);
      if (start.kind == Start::uniform) to[i] = static_cast<{2}>(start.a + (start.b - start.a) * u);
      // Box and Muller 1958
      if (start.kind == Start::normal)
        to[i] = static_cast<{2}>(start.a + start.b * std::sqrt(-2 * std::log(v)) * std::cos(6.283185307179586 * u));
    }}
  }}
  return {1}_OK;
)cpp",
                       n, u, r);
  if (what == "update")
    return fmt::format(
        R"cpp(  if (!parameters || !gradients || !optimizer) return {0}_ERROR_NULL;
  if (step < 1) return {0}_ERROR_STEP;
  // Adam's bias corrections (Kingma and Ba 2015, algorithm 1), folded into two numbers.
  const double t = static_cast<double>(step), first = 1 - std::pow({2}, t), second = 1 - std::pow({3}, t);
  const {1} learning_rate_corrected = static_cast<{1}>(static_cast<double>(learning_rate) / first);
  const {1} second_correction = static_cast<{1}>(1 / std::sqrt(second));
  {1}* const moment1 = optimizer;
  {1}* const moment2 = optimizer + {0}_PARAMETER_FLOATS;
{4})cpp",
        u, r, recipe.beta1, recipe.beta2,
        dispatch(m, "update",
                 {"parameters", "gradients", "moment1", "moment2", "&learning_rate_corrected", "&second_correction"}));
  if (what == "train_step")
    return fmt::format(R"cpp(  if (!optimizer) return {1}_ERROR_NULL;
  if (step < 1) return {1}_ERROR_STEP;
  const int code = {0}_loss_and_gradients(parameters, images, labels, batch, outputs, loss, gradients, scratch);
  return code ? code : {0}_update(parameters, gradients, optimizer, step, learning_rate);
)cpp",
                       n, u);
  return run_program(m, f, what);
}

}  // namespace

std::string emit_api(const ModelFiles& m) {
  const std::string n = m.name, u = m.upper();
  std::string out = fmt::format(R"cpp(// Generated by Tessera from the declaration of {0}. The C API of {0}.h.
#include "{0}.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "{0}_kernels.h"

)cpp",
                                n);
  out += parameter_tables(m);
  out += R"cpp(
// Philox4x32-10: four random words for a counter and a key (Salmon et al. 2011, Parallel random numbers: as easy as
// 1, 2, 3).
struct Words {
  std::uint32_t word[4];
};
Words philox(std::uint64_t counter, std::uint64_t stream, std::uint64_t key) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  std::uint32_t k[2] = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0], b = std::uint64_t{0xCD9E8D57u} * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
                                   static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    std::memcpy(c, next, sizeof c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}
)cpp";
  out += isa_choice(m);
  out += fmt::format(R"cpp(
// Whether every label names a class.
bool labels_fit(const std::int32_t* labels, std::int64_t batch) {{
  for (std::int64_t i = 0; i < batch; ++i)
    if (labels[i] < 0 || labels[i] >= {1}_OUTPUT_FLOATS) return false;
  return true;
}}

// Each parameter begins on a multiple of 16 floats; what lies between them is zero.
void zero_gaps({2}* arena) {{
  for (int p = 0; p < {1}_PARAMETERS; ++p)
    for (std::int64_t i = starts[p].count; i % 16; ++i) arena[{0}_parameters[p].offset + i] = 0;
}}

}}  // namespace

extern "C" {{
)cpp",
                     n, u, m.real);
  for (const tree::Function& f : api_functions(m)) out += "\n" + tree::print_head(f) + body_of(m, f) + "}\n";
  return out + "\n}  // extern \"C\"\n";
}

}  // namespace tessera::codegen
