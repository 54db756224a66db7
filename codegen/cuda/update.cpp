#include "codegen/cuda/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/all_of.hpp>

#include "codegen/emit/entry.hpp"
#include "codegen/emit/tree.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen::cuda {

namespace {

constexpr int numbers_at = 128;  // in the update's scratch, in reals

/// How many numbers a phase of a training step tells beside its loss; of a whole step 0.
std::int64_t reported_losses(const Model& m) {
  for (const Plan& plan : m.plans)
    if (traits_of(plan.program.kind).trains) return std::ssize(plan.program.graph.losses);
  return 0;
}

/// What a number of the update is made of: an expression over t, rate and norm.
std::string number_of(const graph::Recipe& r, const std::string& number) {
  if (number == "learning_rate") return "rate";
  if (number == "learning_rate_corrected") return fmt::format("rate / (1 - pow({}, t))", r.beta1);
  if (number == "second_correction") return fmt::format("1 / sqrt(1 - pow({}, t))", r.beta2);
  if (number == "decay")
    return r.optimizer == graph::Recipe::Optimizer::adamw ? fmt::format("{} * rate", r.weight_decay)
                                                          : fmt::format("{}", r.weight_decay);
  if (number == "gradient_scale") return fmt::format("fmin(1.0, {} / (norm + 1e-6))", r.clip_norm);
  return fmt::format("t == 1 ? 0.0 : {}", r.average);  // average_kept
}

std::string pack_kernel(const Model& m) {
  return fmt::format(R"cpp(
// The parameters as bf16.
__global__ void __launch_bounds__(256) pack_parameters(const real* parameters, bf16* packed) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {}) packed[i] = rounded(parameters[i]);
}}
)cpp",
                     m.arena.reals);
}

/// What both forms of the update begin with behind their checks.
std::string numbers_in_scratch() {
  return fmt::format(
      "  real* const numbers = static_cast<real*>(scratch) + {};\n  const Stream s = static_cast<Stream>(stream);\n",
      numbers_at);
}
tree::Expr number_at(std::size_t i) { return tree::name("numbers") + tree::integer(static_cast<std::int64_t>(i)); }

/// The call of run_update for the parameters from `first` to `last`. `at`: where they begin of what has the name given,
/// `number`: where a number of the update lies.
template <class At, class Number>
tree::Statement update_of(const Model& m, const At& at, const std::vector<tree::Expr>& kept, const Number& number,
                          const tree::Expr& first, const tree::Expr& last) {
  std::vector<tree::Expr> arguments{at("parameters")};
  if (packs(m)) arguments.push_back(at("static_cast<bf16*>(packed)"));
  arguments.push_back(at("gradients"));
  arguments.insert(arguments.end(), kept.begin(), kept.end());
  for (std::size_t i = 0; i < optimizer_numbers(m.recipe).size(); ++i) arguments.push_back(number(i));
  for (const tree::Expr& last_ones : {first, last, tree::name("&step->stopped"), tree::name("s")})
    arguments.push_back(last_ones);
  return tree::evaluate(tree::call("run_update", std::move(arguments)));
}

}  // namespace

bool packs(const Model& m) { return m.plans.front().program.precision == Precision::bf16; }
bool gathers(const Model& m) { return m.recipe.accumulate > 1 || m.distributed; }
bool clips(const Model& m) { return m.recipe.clip_norm > 0; }
bool trains_all(const Model& m) { return ranges::all_of(m.arena.entries, &ArenaEntry::trained); }
std::int64_t check_blocks(const Model& m) { return std::clamp<std::int64_t>(m.arena.reals / (256 * 16), 1, 1024); }

std::vector<std::pair<std::int64_t, std::int64_t>> assigned_runs(const Model& m) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const ArenaEntry& e : m.arena.entries)
    if (e.assigned) runs.emplace_back(e.offset, e.offset + e.reals);
  return runs;
}

std::vector<std::pair<std::int64_t, std::int64_t>> gaps(const Model& m) {
  std::vector<std::pair<std::int64_t, std::int64_t>> found;
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      if (e.reals % 16) found.emplace_back(e.at(layer) + e.reals, e.at(layer) + (e.reals + 15) / 16 * 16);
  return found;
}

std::vector<std::tuple<std::int64_t, std::int64_t, bool>> decay_runs(const Model& m) {
  std::map<std::int64_t, std::optional<bool>> decays;  // by offset; nothing: not trained
  for (const ArenaEntry& e : m.arena.entries)
    for (int layer = 0; layer < e.count; ++layer)
      decays[e.at(layer)] = e.trained ? std::optional<bool>(m.recipe.weight_decay <= 0 || e.decay) : std::nullopt;
  std::vector<std::tuple<std::int64_t, std::int64_t, bool>> runs;
  for (auto at = decays.begin(); at != decays.end(); ++at) {
    const auto next = std::next(at);
    const std::int64_t end = next == decays.end() ? m.arena.reals : next->first;
    if (!at->second) continue;
    if (!runs.empty() && std::get<1>(runs.back()) == at->first && std::get<2>(runs.back()) == *at->second)
      std::get<1>(runs.back()) = end;
    else
      runs.emplace_back(at->first, end, *at->second);
  }
  return runs;
}

std::string update_kernels(const Model& m) {
  if (!trains(m.plans)) return packs(m) ? pack_kernel(m) : "";
  std::string out = R"cpp(
// The next step's number.
__global__ void __launch_bounds__(32) count_on(tessera_cuda_step* step) {
  if (thread_x() == 0) step->step += 1;
}
)cpp";
  out += fmt::format(R"cpp(
// Whether {2} and all gradients are numbers: of an infinity, too, the difference to itself is none.
__global__ void __launch_bounds__(256) find_no_number({3}const real* loss, const real* gradients, std::int32_t* stopped) {{
  bool found = block_x() == 0 && thread_x() == 0 && loss[0] - loss[0] != 0;
{4}  for (int i = block_x() * 256 + thread_x(); i < {0}; i += {1} * 256) found = found || gradients[i] - gradients[i] != 0;
  if (found) stopped[0] = 1;
}}
)cpp",
                     m.arena.reals, check_blocks(m), m.recipe.phase ? "the losses" : "the loss",
                     m.recipe.phase ? "const real* losses, " : "",
                     m.recipe.phase
                         ? fmt::format("  if (block_x() == 0)\n    for (int i = thread_x(); i < {}; i += 256) found = "
                                       "found || losses[i] - losses[i] != 0;\n",
                                       reported_losses(m))
                         : "");
  if (gathers(m))
    out += fmt::format(R"cpp(
// Gradients of several batches, weighted.
__global__ void __launch_bounds__(256) add_weighted(real* sum, const real* gradients, real kept, real weight{1}) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {0}) sum[i] = (kept != 0 ? kept * sum[i] : 0) + weight * gradients[i];
}}
)cpp",
                       m.distributed ? "count" : fmt::format("{}", m.arena.reals), m.distributed ? ", int count" : "");
  if (!trains_all(m)) {
    out += fmt::format(R"cpp(
// Gradients of what is not trained are zero, as is what lies between them.
__global__ void __launch_bounds__(256) zero_gradients(real* gradients) {{
  const int i = block_x() * 256 + thread_x();
  if (i < {}) gradients[i] = 0;
}}
)cpp",
                       m.arena.reals);
  } else if (const auto all = gaps(m); !all.empty()) {
    std::string rows;
    for (const auto& [first, last] : all) rows += fmt::format("    {{{}, {}}},\n", first, last);
    out += fmt::format(R"cpp(
// What lies between the gradients is zero.
__device__ const int gaps[{0}][2] = {{
{1}}};
__global__ void __launch_bounds__(32) zero_gaps(real* gradients) {{
  for (int gap = thread_x(); gap < {0}; gap += 32)
    for (int i = gaps[gap][0]; i < gaps[gap][1]; ++i) gradients[i] = 0;
}}
)cpp",
                       all.size(), rows);
  }
  if (const auto runs = assigned_runs(m); !runs.empty()) {
    std::string rows;
    for (const auto& [first, last] : runs) rows += fmt::format("    {{{}, {}}},\n", first, last);
    out += fmt::format(R"cpp(
// Buffers take the values that stand where other parameters have gradients.
__device__ const int buffers[{0}][2] = {{
{1}}};
__global__ void __launch_bounds__(256) take_buffers(real* parameters{2}, const real* gradients,
                                                     const std::int32_t* stopped) {{
  if (stopped[0]) return;
  for (int i = buffers[block_x()][0] + thread_x(); i < buffers[block_x()][1]; i += 256) {{
    parameters[i] = gradients[i];
{3}  }}
}}
)cpp",
                       runs.size(), rows, packs(m) ? ", bf16* packed" : "",
                       packs(m) ? "    packed[i] = rounded(gradients[i]);\n" : "");
  }
  if (packs(m)) out += pack_kernel(m);
  // Where GPUs share a step each sums what it owns, whole chunks.
  if (clips(m) && m.distributed)
    out += fmt::format(R"cpp(
// Sums of squares of chunks of the gradients, 64 in all, in double precision and always in the same order.
__global__ void __launch_bounds__(256) squares_of(const real* gradients, int first_chunk, double* sums) {{
  double* const of_thread = shared_memory<double>();
  const std::int64_t chunk = first_chunk + block_x(), end = {0} * (chunk + 1) / 64 * 16;
  double sum = 0;
  for (std::int64_t i = {0} * chunk / 64 * 16 + thread_x(); i < end; i += 256)
    sum += double(gradients[i]) * gradients[i];
  of_thread[thread_x()] = sum;
  barrier();
  if (thread_x() == 0) {{
    double all = 0;
    for (int i = 0; i < 256; ++i) all += of_thread[i];
    sums[chunk] = all;
  }}
}}
)cpp",
                       m.arena.reals / 16);
  if (clips(m) && !m.distributed)
    out += fmt::format(R"cpp(
// Sums of squares of 64 parts of the gradients, in double precision and always in the same order.
__global__ void __launch_bounds__(256) squares_of(const real* gradients, double* sums) {{
  double* const of_thread = shared_memory<double>();
  double sum = 0;
  for (int i = block_x() * 256 + thread_x(); i < {}; i += 64 * 256) sum += double(gradients[i]) * gradients[i];
  of_thread[thread_x()] = sum;
  barrier();
  if (thread_x() == 0) {{
    double all = 0;
    for (int i = 0; i < 256; ++i) all += of_thread[i];
    sums[block_x()] = all;
  }}
}}
)cpp",
                       m.arena.reals);
  std::string body;
  if (clips(m)) body += "  double norm = 0;\n  for (int i = 0; i < 64; ++i) norm += sums[i];\n  norm = sqrt(norm);\n";
  const std::vector<std::string> numbers = optimizer_numbers(m.recipe);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    body +=
        fmt::format("  numbers[{}] = static_cast<real>({});  // {}\n", i, number_of(m.recipe, numbers[i]), numbers[i]);
  body += fmt::format("  numbers[{}] = 0;\n", numbers.size());
  const bool counts = body.find("t)") != std::string::npos || body.find("t == 1") != std::string::npos;
  out += fmt::format(R"cpp(
// The numbers of an update that change from step to step. Adam's corrections: Kingma and Ba 2015, algorithm 1.
__global__ void __launch_bounds__(32) update_numbers(const tessera_cuda_step* step, {}real* numbers) {{
  if (thread_x() > 0) return;
{}  const double rate = step->learning_rate;
{}}}
)cpp",
                     clips(m) ? "const double* sums, " : "",
                     counts ? "  const double t = static_cast<double>(step->step);\n" : "", body);
  return out;
}

std::string update_statements(const Model& m) {
  const std::vector<std::string> numbers = optimizer_numbers(m.recipe);
  std::string body = numbers_in_scratch();
  if (clips(m))
    body += "  double* const sums = static_cast<double*>(scratch);\n" +
            fmt::format("  launch(squares_of, dim3(64), dim3(256), 256 * sizeof(double), s, gradients, {}sums);\n",
                        m.distributed ? "0, " : "") +
            "  launch(update_numbers, dim3(1), dim3(32), 0, s, step, static_cast<const double*>(sums), numbers);\n";
  else
    body += "  launch(update_numbers, dim3(1), dim3(32), 0, s, step, numbers);\n";
  std::vector<tree::Expr> kept;
  for (std::size_t i = 0; i < optimizer_state(m.recipe).size(); ++i)
    kept.push_back(tree::name("optimizer") + tree::integer(static_cast<std::int64_t>(i) * m.arena.reals));
  for (const auto& [first, last, decays] : decay_runs(m)) {
    const bool decays_here = decays;
    const auto number = [&](std::size_t i) {
      return number_at(numbers[i] == "decay" && !decays_here ? numbers.size() : i);
    };
    body += tree::print({update_of(
                            m, [](const char* name) { return tree::name(name); }, kept, number, tree::integer(first),
                            tree::integer(last))},
                        1);
  }
  if (const auto runs = assigned_runs(m); !runs.empty())
    body += fmt::format("  launch(take_buffers, dim3({}), dim3(256), 0, s, parameters,{} gradients, &step->stopped);\n",
                        runs.size(), packs(m) ? " static_cast<bf16*>(packed)," : "");
  return body;
}

std::string update_range_statements(const Model& m) {
  const std::vector<std::string> numbers = optimizer_numbers(m.recipe);
  std::string rows;
  const auto runs = decay_runs(m);
  for (const auto& [first, last, decays] : runs) rows += fmt::format("      {{{}, {}, {}}},\n", first, last, decays);
  std::vector<tree::Expr> kept;
  for (std::size_t i = 0; i < optimizer_state(m.recipe).size(); ++i)
    kept.push_back(tree::name(
        i == 0 ? std::string("optimizer + (begin - from)")
               : fmt::format("optimizer + {}(to - from) + (begin - from)", i == 1 ? "" : fmt::format("{} * ", i))));
  const auto number = [&](std::size_t i) {
    return numbers[i] != "decay"
               ? number_at(i)
               : tree::name("numbers") + tree::name(fmt::format("(stretch.decays ? {} : {})", i, numbers.size()));
  };
  const auto at = [](const char* name) { return tree::name(name) + tree::name("begin"); };
  return fmt::format(
             "  if (from < 0 || from > to || to > {} || from % 16 != 0 || to % 16 != 0) return {}_ERROR_RANGE;\n",
             m.arena.reals, upper(m.name)) +
         (clips(m) ? "" : "  (void)squares;  // nothing is clipped\n") + numbers_in_scratch() +
         fmt::format("  launch(update_numbers, dim3(1), dim3(32), 0, s, step, {}numbers);\n",
                     clips(m) ? "squares, " : "") +
         fmt::format(R"cpp(  // By whether weight decay applies.
  const struct {{
    int64_t first, last;
    bool decays;
  }} stretches[{}] = {{
{}  }};
  for (const auto& stretch : stretches) {{
    const int64_t begin = from > stretch.first ? from : stretch.first, end = to < stretch.last ? to : stretch.last;
    if (begin >= end) continue;
)cpp",
                     runs.size(), rows) +
         tree::print({update_of(m, at, kept, number, tree::integer(0), tree::name("end - begin"))}, 2) + "  }\n";
}

}  // namespace tessera::codegen::cuda
