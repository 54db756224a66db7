#include "codegen/emit/update.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "codegen/emit/isa_choice.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {
namespace {

/// A stretch of the parameters that is updated as one, and whether weight decay applies to it.
struct Run {
  std::int64_t first, last;
  bool decays;
};

/// All parameters that are trained; `unpacked`: but the weights that are packed while they are updated.
std::vector<Run> runs_of(const ModelFiles& m, bool unpacked = true) {
  unpacked = unpacked && updates_while_packing(m.arena, m.packed);
  std::map<std::int64_t, std::optional<bool>> starts;  // by offset
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      starts[e.at(layer)] = !e.trained || (unpacked && m.packed.packs_by_rows(e, layer))
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

}  // namespace

bool keeps_state(const ModelFiles& m) { return !optimizer_state(m.forward.recipe).empty(); }

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
                       m.forward.recipe.phase ? "this phase trains"
                       : m.packed.reals       ? "no product reads packed"
                                              : "weight decay applies to, or does not",
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

std::string update_body(const ModelFiles& m, bool range) {
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
  for (const ArenaEntry& e : m.arena.entries)
    if (e.assigned)
      body += fmt::format("  // {2}\n  std::memcpy(parameters + {0}, gradients + {0}, {1} * sizeof *parameters);\n",
                          e.offset, e.reals, e.key);
  if (!packs) return body + (is_whole(runs, m) ? "" : fmt::format("  return {}_OK;\n", u));
  if (!updates_while_packing(m.arena, m.packed)) return body + dispatch(m, "pack", {"parameters", "packed"});
  arguments.insert(arguments.begin() + 1, "packed");
  return body + dispatch(m, "update_and_pack", arguments);
}

std::string learning_rate_body(const graph::Recipe& r) {
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

}  // namespace tessera::codegen
