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
  struct Row {
    std::int64_t offset;
    std::string table, start;
  };
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
std::string dispatch(const ModelFiles& m, const std::string& program, const std::string& arguments) {
  std::string cases;
  bool wide = false;
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    if (m.targets[i].name != "scalar" && !wide) {
      cases += "#if defined(__x86_64__)\n";
      wide = true;
    }
    cases += fmt::format("    case {}:\n      {}_{}_{}({});\n      return {}_OK;\n", i, m.name, program,
                         m.targets[i].name, arguments, m.upper());
  }
  if (wide) cases += "#endif\n";
  return fmt::format("  switch (choose_isa()) {{\n{}    default:\n      return {}_ERROR_ISA;\n  }}\n", cases,
                     m.upper());
}

}  // namespace

std::string emit_api(const ModelFiles& m) {
  const std::string n = m.name, u = m.upper(), r = m.real;
  const graph::Recipe& recipe = m.forward.recipe;
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
// Philox4x32-10: four random words for a counter and a key (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3).
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
  out += fmt::format(
      R"cpp(
// Whether every label names a class.
bool labels_fit(const std::int32_t* labels, std::int64_t batch) {{
  for (std::int64_t i = 0; i < batch; ++i)
    if (labels[i] < 0 || labels[i] >= {1}_OUTPUT_FLOATS) return false;
  return true;
}}

}}  // namespace

extern "C" {{

const char* {0}_error(int code) {{
  switch (code) {{
    case {1}_OK:
      return "no error";
    case {1}_ERROR_NULL:
      return "a pointer is null";
    case {1}_ERROR_BATCH:
      return "the batch must hold at least one image";
    case {1}_ERROR_LABEL:
      return "a label is not in [0, {3})";
    case {1}_ERROR_ISA:
      return "TESSERA_ISA names kernels that do not exist or that this processor cannot run";
    case {1}_ERROR_STEP:
      return "steps are counted from 1";
    default:
      return "unknown error code";
  }}
}}

const char* {0}_isa(void) {{
  const int isa = choose_isa();
  return isa < 0 ? "" : isa_names[isa];
}}

const char* {0}_summary(void) {{
  return{4};
}}

int {0}_init({2}* parameters, uint64_t seed) {{
  if (!parameters) return {1}_ERROR_NULL;
  std::memset(parameters, 0, {1}_PARAMETER_FLOATS * sizeof({2}));
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
}}

int {0}_pack(const {2}* parameters, {2}*) {{ return parameters ? {1}_OK : {1}_ERROR_NULL; }}

int {0}_forward(const {2}* parameters, const {2}* images, int64_t batch, {2}* outputs, void* scratch) {{
  if (!parameters || !images || !outputs || !scratch) return {1}_ERROR_NULL;
  if (batch < 1) return {1}_ERROR_BATCH;
{5}}}

int {0}_evaluate(const {2}* parameters, const {2}* images, const int32_t* labels, int64_t batch, {2}* outputs, {2}* loss,
{6}void* scratch) {{
  if (!parameters || !images || !labels || !outputs || !loss || !scratch) return {1}_ERROR_NULL;
  if (batch < 1) return {1}_ERROR_BATCH;
  if (!labels_fit(labels, batch)) return {1}_ERROR_LABEL;
{7}}}

int {0}_loss_and_gradients(const {2}* parameters, const {2}* images, const int32_t* labels, int64_t batch,
{8}{2}* outputs, {2}* loss, {2}* gradients, void* scratch) {{
  if (!parameters || !images || !labels || !outputs || !loss || !gradients || !scratch) return {1}_ERROR_NULL;
  if (batch < 1) return {1}_ERROR_BATCH;
  if (!labels_fit(labels, batch)) return {1}_ERROR_LABEL;
{9}}}
)cpp",
      n, u, r, m.classes(), literal(summary(m)),
      dispatch(m, "forward", fmt::format("parameters, images, batch, outputs, static_cast<{}*>(scratch)", r)),
      std::string(n.size() + 14, ' '),
      dispatch(m, "evaluate",
               fmt::format("parameters, images, labels, batch, outputs, loss, static_cast<{}*>(scratch)", r)),
      std::string(n.size() + 24, ' '),
      dispatch(m, "loss_and_gradients",
               fmt::format("parameters, images, labels, batch, outputs, loss, gradients,\n{}static_cast<{}*>(scratch)",
                           std::string(n.size() + 35, ' '), r)));
  out += fmt::format(
      R"cpp(
int {0}_input_gradient(const {2}* parameters, const {2}* images, const int32_t* labels, int64_t batch, {2}* outputs,
{3}{2}* loss, {2}* image_gradients, void* scratch) {{
  if (!parameters || !images || !labels || !outputs || !loss || !image_gradients || !scratch) return {1}_ERROR_NULL;
  if (batch < 1) return {1}_ERROR_BATCH;
  if (!labels_fit(labels, batch)) return {1}_ERROR_LABEL;
{4}}}
)cpp",
      n, u, r, std::string(n.size() + 20, ' '),
      dispatch(
          m, "input_gradient",
          fmt::format("parameters, images, labels, batch, outputs, loss, image_gradients,\n{}static_cast<{}*>(scratch)",
                      std::string(n.size() + 31, ' '), r)));
  out += fmt::format(R"cpp(
int {0}_update({2}* parameters, const {2}* gradients, {2}* optimizer, int64_t step, float learning_rate) {{
  if (!parameters || !gradients || !optimizer) return {1}_ERROR_NULL;
  if (step < 1) return {1}_ERROR_STEP;
  // Adam's bias corrections (Kingma and Ba 2015, algorithm 1), folded into two numbers.
  const double first = 1 - std::pow({3}, static_cast<double>(step)), second = 1 - std::pow({4}, static_cast<double>(step));
  const {2} learning_rate_corrected = static_cast<{2}>(static_cast<double>(learning_rate) / first);
  const {2} second_correction = static_cast<{2}>(1 / std::sqrt(second));
{5}}}

int {0}_train_step({2}* parameters, {2}* gradients, {2}* optimizer, const {2}* images, const int32_t* labels,
{6}int64_t batch, int64_t step, float learning_rate, {2}* outputs, {2}* loss, void* scratch) {{
  if (!optimizer) return {1}_ERROR_NULL;
  if (step < 1) return {1}_ERROR_STEP;
  const int code = {0}_loss_and_gradients(parameters, images, labels, batch, outputs, loss, gradients, scratch);
  return code ? code : {0}_update(parameters, gradients, optimizer, step, learning_rate);
}}

}}  // extern "C"
)cpp",
                     n, u, r, recipe.beta1, recipe.beta2,
                     dispatch(m, "update",
                              fmt::format("parameters, gradients, optimizer, optimizer + "
                                          "{}_PARAMETER_FLOATS,\n{}&learning_rate_corrected, &second_correction",
                                          u, std::string(n.size() + 21, ' '))),
                     std::string(n.size() + 16, ' '));
  return out;
}

}  // namespace tessera::codegen
