// write_generated DIR [few | fuzz SEED COUNT]: generates every model of generated_cases.hpp, in double for the scalar
// kernels and in float for all of them, into DIR, with a few sources that hold them all: so a compiler reads its
// headers once, not once a model. few: every third model, and no AVX-512. fuzz: random models in the place of those,
// and random Vision Transformers, in bf16 and int8 as well, every other one without one of the passes.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string_view>

#include "codegen/driver.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

/// Everything that any emitted file includes, so that it is included outside the models' namespaces.
constexpr const char* headers = R"cpp(#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__unix__)
#include <unistd.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/kernels/generated_model.hpp"
)cpp";

/// The models of one element type.
class Writer {
 public:
  Writer(fs::path folder, std::string real, std::vector<std::string> isas,
         codegen::Precision precision = codegen::Precision::fp32)
      : folder_(std::move(folder)),
        real_(std::move(real)),
        kind_(precision == codegen::Precision::fp32 ? real_ : codegen::name_of(precision)),
        isas_(std::move(isas)),
        precision_(precision) {
    sources_["api"] = headers;
    for (const std::string& isa : isas_) sources_[isa] = headers;
    sources_["table"] = headers;
  }

  /// `without`: a pass that is left out.
  void add(const GeneratedCase& c, const std::string& without = "") {
    const std::string case_name = c.name + (without.empty() ? "" : "_without_" + without);
    const std::string name = case_name + "_" + kind_;
    for (const auto& [file, text] : generated(c, name, without)) write(folder_ / file, text);
    auto include = [&](const std::string& source, const std::string& file) {
      sources_[source] += "\nnamespace " + name + "_model {\n#include \"" + file + "\"\n}\n";
    };
    include("api", name + ".cpp");
    for (const std::string& isa : isas_) include(isa, name + "_" + isa + ".cpp");
    sources_["table"] += "#include \"" + name + ".h\"\n";
    row(case_name, name);
  }

  bool changes_something(const GeneratedCase& c, const std::string& pass) const {
    return generated(c, c.name, pass) != generated(c, c.name, "");
  }

  void finish() {
    sources_["table"] += "\nnamespace tessera::test {\nnamespace {\nconst GeneratedModel<" + real_ + "> table[] = {\n" +
                         rows_ + "};\n}  // namespace\nstd::span<const GeneratedModel<" + real_ + ">> generated_" +
                         kind_ + "s() { return table; }\n}  // namespace tessera::test\n";
    for (const auto& [source, text] : sources_) write(folder_ / (kind_ + "_" + source + ".cpp"), text);
  }

 private:
  std::map<std::string, std::string> generated(const GeneratedCase& c, const std::string& name,
                                               const std::string& without) const {
    Sketch sketch;
    c.record(sketch);
    sketch.graph.name = name;
    codegen::GeneratorOptions options;
    options.isas = isas_;
    options.real = real_;
    options.precision = precision_;
    if (!without.empty()) options.disabled_passes.insert(without);
    return codegen::generate(sketch.graph, options);
  }

  void row(const std::string& case_name, const std::string& name) {
    std::string upper;
    for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    auto bytes = [&](const std::string& program) {
      return "[](std::int64_t batch) -> std::int64_t { return " + upper + "_" + program + "_SCRATCH_BYTES(batch); }, ";
    };
    rows_ += "    {\"" + case_name + "\", {" + name + "_parameters, " + upper + "_PARAMETERS}, " + upper +
             "_PARAMETER_FLOATS, " + upper + "_PACKED_FLOATS, " + bytes("FORWARD") + bytes("EVALUATE") +
             bytes("TRAIN") + bytes("INPUT_GRADIENT");
    for (const char* function : {"_isa", "_pack", "_forward", "_evaluate", "_loss_and_gradients", "_input_gradient"})
      rows_ += name + function + ", ";
    rows_ += "},\n";
  }

  fs::path folder_;
  std::string real_, kind_;
  std::vector<std::string> isas_;
  codegen::Precision precision_;
  std::map<std::string, std::string> sources_;
  std::string rows_;
};

/// The first pass from the `number`-th on, in circles, that changes what is generated for the case; "": none does.
std::string pass_to_leave_out(const Writer& writer, const GeneratedCase& c, std::size_t number) {
  constexpr std::size_t all = std::size(cases_without_passes);
  for (std::size_t i = 0; i < all; ++i)
    if (const std::string& pass = cases_without_passes[(number + i) % all].second; writer.changes_something(c, pass))
      return pass;
  return "";
}

int run(const fs::path& folder, const std::vector<GeneratedCase>& cases, bool few, bool random = false) {
  fs::create_directories(folder);
  std::vector<std::string> isas;
  for (const codegen::Target& target : codegen::targets_of(codegen::Precision::fp32)) isas.emplace_back(target.name);
  if (few) std::erase(isas, "avx512");
  std::vector<Writer> writers{{folder, "double", {"scalar"}}, {folder, "float", isas}};
  // Where a processor with AVX-512 compares them, tests/models does: here compiling them would take long.
  if (random)
    for (const codegen::Precision p : {codegen::Precision::bf16, codegen::Precision::int8})
      writers.emplace_back(folder, "float", std::vector<std::string>{"scalar", "avx2"}, p);
  int failures = 0;
  const auto add = [&](const GeneratedCase& c, const std::string& without) {
    for (Writer& writer : writers) writer.add(c, without);
  };
  const auto add_all_of = [&](const GeneratedCase& c, std::size_t number) {
    // Every other random model without one pass, in turns: as many are compiled, and each pass is missed somewhere.
    add(c, random && number % 2 ? pass_to_leave_out(writers[1], c, number / 2) : "");
    if (few || random) return;
    // Each pass that can be left out, of a case in which it has to change something.
    for (const auto& [name, without] : cases_without_passes) {
      if (c.name != name) continue;
      for (std::size_t i : {0, 1})
        if (!writers[i].changes_something(c, without))
          throw std::runtime_error("the pass " + without + " changes nothing, so that the case shows nothing of it");
      add(c, without);
    }
  };
  for (std::size_t i = 0; i < cases.size(); i += few ? 3 : 1) try {
      add_all_of(cases[i], i);
    } catch (const std::exception& error) {
      std::cerr << cases[i].name << ": " << error.what() << std::endl;
      ++failures;
    }
  if (failures) return 1;
  for (Writer& writer : writers) writer.finish();
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  try {
    using namespace tessera::test;
    const bool few = argc == 3 && std::string_view(argv[2]) == "few";
    if (argc == 2 || few) return run(argv[1], generated_cases(), few);
    if (argc == 5 && std::string_view(argv[2]) == "fuzz") {
      std::vector<GeneratedCase> cases;
      for (int i = 0; i < std::stoi(argv[4]); ++i)
        cases.push_back(fuzz_case("fuzz_" + std::string(argv[3]) + "_" + std::to_string(i)));
#ifdef TESSERA_RANDOM_SPECS
      for (GeneratedCase& c : random_specs()) cases.push_back(std::move(c));
#endif
      return run(argv[1], cases, false, true);
    }
    std::cerr << "usage: " << argv[0] << " DIR [few | fuzz SEED COUNT]" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
