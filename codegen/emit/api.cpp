#include "codegen/emit/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>

#include "codegen/emit/api_functions.hpp"
#include "codegen/emit/entry.hpp"
#include "codegen/emit/isa_choice.hpp"
#include "codegen/emit/parameter_table.hpp"
#include "codegen/emit/summary.hpp"
#include "codegen/emit/update.hpp"
#include "codegen/error.hpp"

namespace tessera::codegen {

namespace {

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
    if (p.name == "gradients")
      checks += ranges::all_of(m.arena.entries, &ArenaEntry::trained)
                    ? "  zero_gaps(gradients);\n"
                    : fmt::format("  std::memset(gradients, 0, {}_PARAMETER_FLOATS * sizeof *gradients);\n", u);
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

/// For each thread a chunk of the batch, and more where images are small: as many as fit into half of L2, so
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
  const std::int64_t image = {0} * sizeof({1}), near = (tessera_l2_bytes() / 2 + image - 1) / image;
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
  if (training && takes_labels(m.forward)) add("ERROR_LABEL", fmt::format("a label is not in [0, {})", m.classes()));
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
  if (what == "update" || what == "update_range") return update_body(m, what == "update_range");
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
  if (what == "learning_rate") return learning_rate_body(recipe);
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
  if (trains(m.plans) && takes_labels(m.forward))
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
