// NAME.cpp: the C API over the kernels. Parameter table, starting values, choice of instruction set, argument checks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>

#include "codegen/emit/entry.hpp"
#include "codegen/emit/model.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/optimizer.hpp"

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
  return fmt::format(R"cpp(extern "C" const tessera_parameter {0}_parameters[{1}_PARAMETERS] = {{
{2}}};

extern "C" const char* const {0}_layers[{1}_LAYERS] = {{
{4}}};

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
                     m.name, m.upper(), table, start, names);
}

bool uses_amx(const ModelFiles& m) { return ranges::contains(m.targets, MatrixUnit::amx, &Isa::matrix_unit); }

/// What CPUID, and the system for AMX, has to say before a program uses this instruction set.
std::string cpu_test(const Isa& isa) {
  std::vector<std::string> tests;
  for (const std::string_view feature : isa.cpu_features)
    tests.push_back(fmt::format("__builtin_cpu_supports(\"{}\")", feature));
  if (isa.matrix_unit == MatrixUnit::amx) tests.emplace_back("may_use_tiles()");
  std::string all;
  for (std::size_t i = 0; i < tests.size(); ++i)
    all += (i == 0 ? "" : i % 2 ? " && " : " &&\n             ") + tests[i];
  return all;
}

std::string isa_choice(const ModelFiles& m) {
  std::string names, supported, on_arm;
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    const Isa& isa = m.targets[i];
    names += fmt::format("{}\"{}\"", i ? ", " : "", isa.name);
    if (isa.family == Family::x86_64) supported += fmt::format("    case {}:\n      return {};\n", i, cpu_test(isa));
    if (isa.family == Family::aarch64)
      on_arm += fmt::format("#if defined(__aarch64__)\n  if (isa == {}) return true;\n#endif\n", i);
  }
  std::string body = supported.empty() ? on_arm + "  return isa == 0;\n"
                                       : on_arm + fmt::format(R"cpp(#if defined(__x86_64__)
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
  const std::string tiles = uses_amx(m) ? R"cpp(
// Linux keeps AMX's tiles from processes that have not asked for them.
[[maybe_unused]] bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, of the component XTILEDATA
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}
)cpp"
                                        : "";
  return tiles + fmt::format(R"cpp(
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
                             names, m.targets.size(), body);
}

/// What comes after a program: its function returns, or goes on.
enum class Then : std::uint8_t { done, next };

/// switch (choose_isa()) over the kernels of one program, so deep in blocks.
std::string dispatch(const ModelFiles& m, const std::string& program, const std::vector<std::string>& arguments,
                     Then then = Then::done, int inside = 0) {
  const std::string margin(static_cast<std::size_t>(2 + 2 * inside), ' ');
  const std::string done = then == Then::next ? "break" : fmt::format("return {}_OK", m.upper());
  std::string cases;
  std::string guard;  // the processor whose cases these are
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    const Isa& isa = m.targets[i];
    if (isa.family != Family::portable && guard != name_of(isa.family)) {
      if (!guard.empty()) cases += "#endif\n";
      guard = name_of(isa.family);
      cases += fmt::format("#if defined(__{}__)\n", guard);
    }
    std::vector<tree::Expr> passed;
    for (const std::string& a : arguments) passed.push_back(tree::name(a));
    const tree::Block call{tree::evaluate(tree::call(fmt::format("{}_{}_{}", m.name, program, isa.name), passed))};
    cases += fmt::format("{0}  case {1}:\n{2}{0}    {3};\n", margin, i, tree::print(call, 3 + inside), done);
  }
  if (!guard.empty()) cases += "#endif\n";
  return fmt::format("{0}switch (choose_isa()) {{\n{1}{0}  default:\n{0}    return {2}_ERROR_ISA;\n{0}}}\n", margin,
                     cases, m.upper());
}

/// So many images that all sizes of a call, and 16 times the images, fit into 64 bits.
std::int64_t most_images(const ModelFiles& m) {
  const Embedding e = embedding_of(m);
  std::int64_t bytes =
      std::max({std::int64_t{16}, attention_maps(m).of_image(), e.features, e.token_reals(), e.pooling_reals()});
  for (const Plan& plan : m.plans) bytes = std::max(bytes, plan.scratch.per_batch);
  return (std::numeric_limits<std::int64_t>::max() >> 5) /
         std::max({bytes, m.image_reals(), m.output_reals(), m.target_reals(), cache_of(m).reals});
}

/// The body of an entry point that runs one program: checks, then kernels.
std::string run_program(const ModelFiles& m, const tree::Function& f, const KernelProgram& program) {
  const std::string u = m.upper();
  const bool steps = traits_of(program.kind).steps;
  std::string nulls, checks;
  std::vector<std::string> arguments;
  std::string random;
  for (const tree::Parameter& p : f.parameters) {
    if (p.name == "seed" || p.name == "step") continue;
    if (p.name == "ready" || p.name == "context") {  // which may be null
      arguments.push_back(p.name);
      continue;
    }
    if (p.name == "at_once") {
      const bool groups = program.groups;
      checks += fmt::format(
          "  if ({}) return {}_ERROR_AT_ONCE;\n",
          groups ? fmt::format("at_once < (batch + {}) / {}", batch_chunks - 1, batch_chunks) : "at_once < batch", u);
      if (groups) arguments.push_back(p.name);
      continue;
    }
    if (p.name == "packed" && !reads_packed(program)) {
      checks += "  (void)packed;  // these kernels read the parameters as they are\n";
      continue;
    }
    if (p.name == "position") {
      checks += fmt::format("  if (position < 0 || position >= {}_TOKENS) return {}_ERROR_POSITION;\n", u, u);
      arguments.emplace_back("at");
      continue;
    }
    if (p.name == "parameters" && !takes_parameters(program)) {
      checks += "  (void)parameters;  // all that these kernels read is packed\n";
      continue;
    }
    if (p.name == "maps" && !has_attention(program)) {
      checks += "  (void)maps;  // there are none\n";
      continue;
    }
    const bool written =
        !p.type.starts_with("const");  // what embed gives, in contrast to the tokens that a model reads
    if (written && (p.name == "tokens" || p.name == "pooling") && !gives(program, p.name)) {
      checks += fmt::format("  (void){};  // there are none\n", p.name);
      continue;
    }
    if (p.type.ends_with("*")) nulls += (nulls.empty() ? "!" : " || !") + p.name;
    arguments.push_back(p.name == "scratch" ? fmt::format("static_cast<{}*>(scratch)", m.real) : p.name);
    if (p.name == "batch") checks += fmt::format("  if (batch < 1 || batch > most_images) return {}_ERROR_BATCH;\n", u);
    if (p.name == "gradients") checks += "  zero_gaps(gradients);\n";
    if (p.name == "outputs" && takes_output_gradients(program.graph)) arguments.emplace_back("&loss");
    if (p.name == compared_with(program.graph) && takes_random(program)) {
      arguments.push_back("random");
      random =
          "  const std::uint64_t at = static_cast<std::uint64_t>(step);\n"
          "  const std::int32_t random[4] = {static_cast<std::int32_t>(seed), static_cast<std::int32_t>(seed >> 32),\n"
          "                                  static_cast<std::int32_t>(at), static_cast<std::int32_t>(at >> 32)};\n";
    }
  }
  if (m.distributed && program.kind == ProgramKind::loss_and_gradients &&
      !ranges::contains(f.parameters, "ready", &tree::Parameter::name))
    arguments.insert(arguments.end(), {"nullptr", "nullptr"});
  if (traits_of(program.kind).trains && random.empty()) random = "  (void)seed, (void)step;  // nothing drops out\n";
  for (const tree::Parameter& p : f.parameters)
    if (p.name == "labels" || (p.name == "tokens" && takes_tokens(m.forward)))
      checks += p.name == "labels" ? fmt::format("  if (!labels_fit(labels, batch)) return {}_ERROR_LABEL;\n", u)
                                   : fmt::format("  if (!tokens_fit(tokens, batch{})) return {}_ERROR_TOKEN;\n",
                                                 steps ? "" : fmt::format(" * {}_TOKENS", u), u);
  if (steps)
    checks += fmt::format(
        "  // Rows behind the position weigh nothing, but 0 times what is no number would be none.\n"
        "  if (position == 0) std::memset(cache, 0, static_cast<std::size_t>({}_CACHE_BYTES(batch)));\n"
        "  const std::int32_t at[1] = {{static_cast<std::int32_t>(position)}};\n",
        u);
  const std::string unasked =
      takes_output_gradients(program.graph) && traits_of(program.kind).has_loss
          ? fmt::format("  {} loss;  // the sum of outputs times their gradients: nobody asks for it\n", m.real)
          : "";
  return fmt::format("  if ({}) return {}_ERROR_NULL;\n", nulls, u) + checks + random + unasked +
         dispatch(m, program.name, arguments);
}

bool keeps_state(const ModelFiles& m) { return !optimizer_state(m.forward.recipe).empty(); }

/// A stretch of the parameters that is updated as one, and whether weight decay applies to it.
struct Run {
  std::int64_t first, last;
  bool decays;
};

/// All parameters; `unpacked`: but the weights that are packed while they are updated.
std::vector<Run> runs_of(const ModelFiles& m, bool unpacked = true) {
  std::map<std::int64_t, std::optional<bool>> starts;  // by offset
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      starts[e.at(layer)] = unpacked && m.packed.packs_by_rows(e, layer)
                                ? std::nullopt
                                : std::optional<bool>(e.decay && m.forward.recipe.weight_decay > 0);
  std::vector<Run> runs;
  for (auto start = starts.begin(); start != starts.end(); ++start) {
    if (!start->second) continue;
    const auto next = std::next(start);
    const std::int64_t end = next == starts.end() ? m.arena.reals : next->first;
    if (!runs.empty() && runs.back().last == start->first && runs.back().decays == *start->second)
      runs.back().last = end;
    else
      runs.push_back({start->first, end, *start->second});
  }
  return runs;
}

bool is_whole(const std::vector<Run>& runs, const ModelFiles& m) {
  return runs.size() == 1 && runs[0].first == 0 && runs[0].last == m.arena.reals;
}

/// The functions that only some recipes need for their update.
std::string update_helpers(const ModelFiles& m) {
  const graph::Recipe& recipe = m.forward.recipe;
  std::string out;
  const std::vector<Run> runs = runs_of(m);
  if (!runs.empty() && !is_whole(runs, m)) {
    const bool decays = recipe.weight_decay > 0;
    std::string rows;
    for (const Run& run : runs)
      rows += fmt::format("    {{{}, {}{}}},\n", run.first, run.last, !decays ? "" : run.decays ? ", true" : ", false");
    out += fmt::format(R"cpp(
// Stretches of the parameters that {}.
struct Run {{
  std::int64_t first, last;
{}}};
constexpr Run runs[{}] = {{
{}}};
)cpp",
                       m.packed.reals ? "no product reads packed" : "weight decay applies to, or does not",
                       decays ? "  bool decays;\n" : "", runs.size(), rows);
  }
  if (recipe.clip_norm > 0 && m.distributed)
    out += fmt::format(R"cpp(
// The sum of squares of one of the 64 chunks of an arena, in double precision.
double sum_of_chunk(const {0}* arena, std::int64_t chunk) {{
  const std::int64_t end = {1}_PARAMETER_FLOATS / 16 * (chunk + 1) / 64 * 16;
  double lanes[16] = {{}};
  for (std::int64_t i = {1}_PARAMETER_FLOATS / 16 * chunk / 64 * 16; i < end; i += 16)
    for (int lane = 0; lane < 16; ++lane) {{
      const double g = static_cast<double>(arena[i + lane]);
      lanes[lane] += g * g;
    }}
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}}
)cpp",
                       m.real, m.upper());
  if (recipe.clip_norm > 0 && m.distributed)
    out += fmt::format(R"cpp(
// The sum of squares of an arena, the same for any number of threads.
double sum_of_squares(const {}* arena) {{
  double sums[64];
#if defined(_OPENMP)
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t chunk = 0; chunk < 64; ++chunk) sums[chunk] = sum_of_chunk(arena, chunk);
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}}
)cpp",
                       m.real);
  if (recipe.clip_norm > 0 && !m.distributed)
    out += fmt::format(R"cpp(
// The sum of squares of an arena, in double precision and in a fixed order for any number of threads.
double sum_of_squares(const {}* arena) {{
  constexpr std::int64_t chunks = 64;
  double sums[chunks];
#if defined(_OPENMP)
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {{
    const std::int64_t end = {}_PARAMETER_FLOATS / 16 * (chunk + 1) / chunks * 16;
    double lanes[16] = {{}};
    for (std::int64_t i = {}_PARAMETER_FLOATS / 16 * chunk / chunks * 16; i < end; i += 16)
      for (int lane = 0; lane < 16; ++lane) {{
        const double g = static_cast<double>(arena[i + lane]);
        lanes[lane] += g * g;
      }}
    sums[chunk] = 0;
    for (const double lane : lanes) sums[chunk] += lane;
  }}
  double all = 0;
  for (const double sum : sums) all += sum;
  return all;
}}
)cpp",
                       m.real, m.upper(), m.upper());
  if (const std::vector<Run> all = runs_of(m, false); m.distributed && !is_whole(all, m)) {
    std::string rows;
    for (const Run& run : all) rows += fmt::format("    {{{}, {}, {}}},\n", run.first, run.last, run.decays);
    out += fmt::format(R"cpp(
// All parameters, by whether weight decay applies to them.
struct Stretch {{
  std::int64_t first, last;
  bool decays;
}};
constexpr Stretch stretches[{}] = {{
{}}};
)cpp",
                       all.size(), rows);
  }
  return out;
}

/// Of update and, with `range`, of update_range.
std::string update(const ModelFiles& m, bool range = false) {
  const graph::Recipe& recipe = m.forward.recipe;
  const std::string u = m.upper(), r = m.real;
  const bool adam = recipe.optimizer != graph::Recipe::Optimizer::sgd;
  const bool packs = m.packed.reals > 0 && !range, clips = recipe.clip_norm > 0;
  std::string body =
      fmt::format("  if (!parameters || !gradients{}{}{}) return {}_ERROR_NULL;\n", packs ? " || !packed" : "",
                  keeps_state(m) ? " || !optimizer" : "", range && clips ? " || !squares" : "", u);
  if (range) {
    body += fmt::format(
        "  if (from < 0 || from > to || to > {0}_PARAMETER_FLOATS || from % 16 != 0 || to % 16 != 0)\n"
        "    return {0}_ERROR_RANGE;\n",
        u);
    if (!clips) body += "  (void)squares;  // nothing is clipped\n";
  } else if (!packs)
    body += "  (void)packed;  // these kernels read the parameters as they are\n";
  if (!keeps_state(m)) body += "  (void)optimizer;  // nothing is kept from step to step\n";
  body += fmt::format("  if (step < 1) return {}_ERROR_STEP;\n", u);
  auto number = [&](const std::string& name, const std::string& value) {
    body += fmt::format("  const {0} {1} = static_cast<{0}>({2});\n", r, name, value);
  };
  if (adam) {
    body += fmt::format(R"cpp(  // Adam's bias corrections (Kingma and Ba 2015, algorithm 1), folded into two numbers.
  const double t = static_cast<double>(step), first = 1 - std::pow({}, t), second = 1 - std::pow({}, t);
)cpp",
                        recipe.beta1, recipe.beta2);
    number("learning_rate_corrected", "static_cast<double>(learning_rate) / first");
    number("second_correction", "1 / std::sqrt(second)");
  }
  if (clips) {
    if (range) body += "  double all = 0;\n  for (int chunk = 0; chunk < 64; ++chunk) all += squares[chunk];\n";
    body += fmt::format("  const double clipped = {} / (std::sqrt({}) + 1e-6);\n", recipe.clip_norm,
                        range ? "all" : "sum_of_squares(gradients)");
    number("gradient_scale", "clipped < 1 ? clipped : 1");
  }
  if (recipe.average > 0) {
    body += "  // The first average is the parameters themselves.\n";
    number("average_kept", fmt::format("step == 1 ? 0 : {}", recipe.average));
  }
  std::vector<std::string> arguments{"parameters", "gradients"};
  int place = 0;
  for (const std::string& state : optimizer_state(recipe)) {
    body += fmt::format("  {}* const {} = optimizer", r, state);
    const std::string length = range ? "(to - from)" : u + "_PARAMETER_FLOATS";
    if (place == 1) body += fmt::format(" + {}", length);
    if (place > 1) body += fmt::format(" + {} * {}", place, length);
    body += ";\n";
    ++place;
    arguments.push_back(state);
  }
  const std::vector<std::string> numbers = optimizer_numbers(recipe);
  for (const std::string& name : numbers) arguments.push_back("&" + name);
  const std::vector<Run> runs = runs_of(m, !range);
  if (recipe.weight_decay > 0) {
    number("decay", recipe.optimizer == graph::Recipe::Optimizer::adamw
                        ? fmt::format("{} * static_cast<double>(learning_rate)", recipe.weight_decay)
                        : fmt::format("{}", recipe.weight_decay));
    if (!runs.empty() && !is_whole(runs, m)) body += fmt::format("  const {} none = 0;\n", r);
  }
  if (range) {
    std::vector<std::string> part = arguments;
    for (std::string& a : part) {
      if (a == "parameters" || a == "gradients")
        a += " + begin";
      else if (a[0] != '&')
        a += " + (begin - from)";
      if (a == "&decay" && !is_whole(runs, m)) a = "stretch.decays ? &decay : &none";
    }
    part.insert(part.end(), {"0", "end - begin"});
    if (is_whole(runs, m)) return body + "  const std::int64_t begin = from, end = to;\n" + dispatch(m, "update", part);
    return body +
           "  for (const Stretch& stretch : stretches) {\n"
           "    const std::int64_t begin = from > stretch.first ? from : stretch.first;\n"
           "    const std::int64_t end = to < stretch.last ? to : stretch.last;\n"
           "    if (begin >= end) continue;\n" +
           dispatch(m, "update", part, Then::next, 1) + fmt::format("  }}\n  return {}_OK;\n", u);
  }
  if (is_whole(runs, m)) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"0", u + "_PARAMETER_FLOATS"});
    body += dispatch(m, "update", all, packs ? Then::next : Then::done);
  } else if (!runs.empty()) {
    std::vector<std::string> stretch = arguments;
    for (std::string& a : stretch)
      if (a == "&decay") a = "run.decays ? &decay : &none";
    stretch.insert(stretch.end(), {"run.first", "run.last"});
    body += "  for (const Run& run : runs) {\n" + dispatch(m, "update", stretch, Then::next, 1) + "  }\n";
  }
  if (!packs) return body + (is_whole(runs, m) ? "" : fmt::format("  return {}_OK;\n", u));
  if (!ranges::any_of(m.packed.entries, packed_by_rows)) return body + dispatch(m, "pack", {"parameters", "packed"});
  arguments.insert(arguments.begin() + 1, "packed");
  return body + dispatch(m, "update_and_pack", arguments);
}

/// The schedule as declared; dsl/recipe.hpp has the formulas.
std::string learning_rate(const graph::Recipe& r) {
  using Schedule = graph::Recipe::Schedule;
  std::vector<std::string> unused;
  std::string body;
  if (r.schedule == Schedule::constant && r.warmup <= 0) unused.push_back("(void)step");
  if (r.schedule != Schedule::steps && r.warmup <= 0) unused.push_back("(void)steps_per_epoch");
  if (r.schedule != Schedule::cosine) unused.push_back("(void)steps");
  if (!unused.empty()) body += fmt::format("  {};\n", fmt::join(unused, ", "));
  if (r.schedule != Schedule::constant || r.warmup > 0) body += "  const double t = static_cast<double>(step);\n";
  if (r.schedule == Schedule::steps || r.warmup > 0)
    body += "  const double epoch = static_cast<double>(steps_per_epoch);\n";
  if (r.warmup > 0)
    body += fmt::format(
        "  const double warmup = {} * epoch;\n"
        "  if (t <= warmup) return static_cast<float>(rate * t / warmup);\n",
        r.warmup);
  if (r.schedule == Schedule::constant) body += "  return static_cast<float>(rate);\n";
  if (r.schedule == Schedule::steps)
    body += fmt::format("  return static_cast<float>(rate * std::pow({}, std::floor((t - 1) / ({} * epoch))));\n",
                        r.factor, r.every);
  if (r.schedule == Schedule::cosine)
    body += fmt::format(
        "  const double done = (t - 1{0}) / (static_cast<double>(steps){0});\n"
        "  return static_cast<float>({1} + (rate - {1}) * (1 + std::cos(3.141592653589793 * done)) / 2);\n",
        r.warmup > 0 ? " - warmup" : "", r.floor);
  return body;
}

/// For each thread a chunk of the batch, and more where images are small: as many as fit into half a second cache, so
/// that what is done once for each group does not weigh.
std::string images_at_once(const ModelFiles& m) {
  const KernelProgram& program = m.plan(ProgramKind::loss_and_gradients).program;
  if (!program.groups) return "  return batch;\n";
  const std::int64_t image = std::max<std::int64_t>(1, m.plan(ProgramKind::loss_and_gradients).scratch.per_batch);
  return fmt::format(R"cpp(#if defined(_OPENMP)
  const std::int64_t threads = omp_get_max_threads();
#else
  const std::int64_t threads = 1;
#endif
  const std::int64_t image = {0} * sizeof({1}), near = (tessera_second_cache() / 2 + image - 1) / image;
  const std::int64_t chunk = batch / {2} + (batch % {2} != 0);
  return chunk < near ? std::min(batch, threads * near) : batch / threads < chunk ? batch : threads * chunk;
)cpp",
                     image, m.real, batch_chunks);
}

/// The body of the function that puts error codes into words.
std::string errors(const ModelFiles& m) {
  std::string body = "  switch (code) {\n";
  const auto add = [&](const std::string& code, const std::string& words) {
    body += fmt::format("    case {}_{}:\n      return \"{}\";\n", m.upper(), code, words);
  };
  const bool training = trains(m.plans);
  add("OK", "no error");
  add("ERROR_NULL", "a pointer is null");
  add("ERROR_BATCH", "the batch must hold at least one image, and no more than memory can have");
  if (training && !takes_targets(m.forward) && !takes_output_gradients(m.forward))
    add("ERROR_LABEL", fmt::format("a label is not in [0, {})", m.classes()));
  if (takes_tokens(m.forward)) add("ERROR_TOKEN", fmt::format("a token is not in [0, {})", m.codes()));
  if (cache_of(m).reals) add("ERROR_POSITION", fmt::format("a position is not in [0, {})", m.image_reals()));
  add("ERROR_ISA", "TESSERA_ISA names kernels that do not exist or that this processor cannot run");
  if (training) {
    add("ERROR_STEP", "steps are counted from 1");
    add("ERROR_AT_ONCE", m.plan(ProgramKind::loss_and_gradients).program.groups
                             ? "at least a sixteenth of the batch has to be worked on at once"
                             : "all images of the batch have to be worked on at once");
  }
  if (m.distributed) add("ERROR_RANGE", "a range of the parameters begins and ends at a multiple of 16 of them");
  return body + "    default:\n      return \"unknown error code\";\n  }\n";
}

/// The function that looks at integers of the caller, `count` of them in its parameter's words: each below `end`.
std::string fits(const std::string& what, const std::string& comment, const std::string& parameter,
                 const std::string& count, const std::string& end) {
  return fmt::format(R"cpp(
// {1}
bool {0}_fit(const std::int32_t* {0}, std::int64_t {2}) {{
  for (std::int64_t i = 0; i < {3}; ++i)
    if ({0}[i] < 0 || {0}[i] >= {4}) return false;
  return true;
}}
)cpp",
                     what, comment, parameter, count, end);
}

/// The shape table as one literal. Clang warns of one that is longer than the 65,536 characters which compilers
/// promise.
std::string summary_body(const ModelFiles& m) {
  const std::string text = summary(m), body = "  return" + literal(text) + ";\n";
  if (text.size() < 65'536) return body;
  return "#if defined(__clang__)\n#pragma clang diagnostic push\n"
         "#pragma clang diagnostic ignored \"-Woverlength-strings\"\n#endif\n" +
         body + "#if defined(__clang__)\n#pragma clang diagnostic pop\n#endif\n";
}

std::string body_of(const ModelFiles& m, const tree::Function& f) {
  const std::string n = m.name, u = m.upper(), r = m.real, what = f.name.substr(n.size() + 1);
  const graph::Recipe& recipe = m.forward.recipe;
  if (what == "error") return errors(m);
  if (what == "images_at_once") return images_at_once(m);
  if (what == "isa") return "  const int isa = choose_isa();\n  return isa < 0 ? \"\" : isa_names[isa];\n";
  if (what == "summary") return summary_body(m);
  const bool packs = what == "pack" || what == "pack_forward";
  if (packs && m.packed.reals)
    return fmt::format("  if (!parameters || !packed) return {}_ERROR_NULL;\n", u) +
           dispatch(m, what, {"parameters", "packed"});
  if (packs) return fmt::format("  (void)packed;\n  return parameters ? {0}_OK : {0}_ERROR_NULL;\n", u);
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
  if (what == "update" || what == "update_range") return update(m, what == "update_range");
  if (what == "squares")
    return fmt::format(R"cpp(  if (!gradients || !squares) return {0}_ERROR_NULL;
  if (first_chunk < 0 || first_chunk > last_chunk || last_chunk > 64) return {0}_ERROR_RANGE;
#if defined(_OPENMP)
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t chunk = first_chunk; chunk < last_chunk; ++chunk) squares[chunk] = sum_of_chunk(gradients, chunk);
  return {0}_OK;
)cpp",
                       u);
  if (what == "learning_rate") return learning_rate(recipe);
  if (what == "train_step")
    return fmt::format(R"cpp({3}  if (step < 1) return {1}_ERROR_STEP;
  const int code = {0}_loss_and_gradients(parameters, packed, {5}, {2}, batch, at_once, seed, step, outputs, loss,
                                    {4}gradients, scratch);
  return code ? code : {0}_update(parameters, packed, gradients, optimizer, step, learning_rate);
)cpp",
                       n, u, compared_with(m.plan(ProgramKind::loss_and_gradients).program.graph),
                       keeps_state(m) ? fmt::format("  if (!optimizer) return {}_ERROR_NULL;\n", u) : "",
                       std::string(n.size(), ' '), input_of(m.forward));
  const std::string runs = what == "gradients" || what == "loss_and_gradients_by_range" ? "loss_and_gradients" : what;
  const auto program = ranges::find(m.plans, runs, [](const Plan& p) { return p.program.name; });
  if (program == m.plans.end()) throw Error(fmt::format("{} has no body", f.name));
  return run_program(m, f, program->program);
}

}  // namespace

std::string emit_api(const ModelFiles& m) {
  const std::string n = m.name, u = m.upper();
  std::string out = fmt::format(R"cpp(// Generated by Tessera from the declaration of {0}. The C API of {0}.h.
#include "{0}.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
{1}
#include "{0}_kernels.h"

)cpp",
                                n,
                                uses_amx(m) ? "#if defined(__linux__)\n"
                                              "#include <sys/syscall.h>\n"
                                              "#include <unistd.h>\n"
                                              "#endif\n"
                                            : "");
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
  out += fmt::format(
      "\n// Of more images sizes in bytes would not fit into 64 bits.\n"
      "[[maybe_unused]] constexpr std::int64_t most_images = INT64_C({});\n",
      most_images(m));
  out += isa_choice(m);
  if (trains(m.plans) && !takes_targets(m.forward) && !takes_output_gradients(m.forward))
    out += fits("labels", "Whether every label names a class.", "batch",
                m.labels_of_image() == 1 ? "batch" : fmt::format("batch * {}", m.labels_of_image()), u + "_CLASSES");
  if (takes_tokens(m.forward))
    out += fits("tokens", "Whether every token names a code.", "count", "count", u + "_CODES");
  out += fmt::format(R"cpp(
// Each parameter begins on a multiple of 16 floats; what lies between them is zero.
void zero_gaps({2}* arena) {{
  for (int p = 0; p < {1}_PARAMETERS; ++p)
    for (std::int64_t i = starts[p].count; i % 16; ++i) arena[{0}_parameters[p].offset + i] = 0;
}}
{3}
}}  // namespace

extern "C" {{
)cpp",
                     n, u, m.real, trains(m.plans) ? update_helpers(m) : "");
  for (const tree::Function& f : api_functions(m)) out += "\n" + tree::print_head(f) + body_of(m, f) + "}\n";
  return out + "\n}  // extern \"C\"\n";
}

}  // namespace tessera::codegen
