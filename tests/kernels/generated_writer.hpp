// What write_generated and write_timm write: many models in a few sources, so that a compiler reads its headers once,
// not once a model.
#pragma once

#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codegen/driver.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {
inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

/// Everything that any emitted file includes, so that it is included outside the models' namespaces.
inline constexpr const char* generated_headers = R"cpp(#if defined(__GNUC__) && !defined(__clang__)
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

/// The models of one element type. Their kernels for an instruction set lie in so many `parts`, one model after the
/// other in the next: a compiler's memory grows with what stands in one source.
class GeneratedWriter {
 public:
  GeneratedWriter(std::filesystem::path folder, std::string real, std::vector<std::string> isas,
                  codegen::Precision precision = codegen::Precision::fp32, std::size_t parts = 1)
      : folder_(std::move(folder)),
        real_(std::move(real)),
        kind_(precision == codegen::Precision::fp32 ? real_ : codegen::name_of(precision)),
        isas_(std::move(isas)),
        precision_(precision),
        parts_(parts) {
    sources_["api"] = generated_headers;
    for (const std::string& isa : isas_)
      for (std::size_t part = 0; part < parts_; ++part) sources_[kernels(isa, part)] = generated_headers;
    sources_["table"] = generated_headers;
  }

  /// `without`: a pass that is left out.
  void add(const GeneratedCase& c, const std::string& without = "") {
    const std::string case_name = c.name + (without.empty() ? "" : "_without_" + without);
    const std::string name = case_name + "_" + kind_;
    for (const auto& [file, text] : generated(c, name, without)) write_text(folder_ / file, text);
    auto include = [&](const std::string& source, const std::string& file) {
      sources_[source] += "\nnamespace " + name + "_model {\n#include \"" + file + "\"\n}\n";
    };
    include("api", name + ".cpp");
    for (const std::string& isa : isas_) include(kernels(isa, models_ % parts_), name + "_" + isa + ".cpp");
    ++models_;
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
    for (const auto& [source, text] : sources_) write_text(folder_ / (kind_ + "_" + source + ".cpp"), text);
  }

 private:
  /// "avx2", or "avx2_0" where there are several.
  std::string kernels(const std::string& isa, std::size_t part) const {
    return parts_ == 1 ? isa : isa + "_" + std::to_string(part);
  }

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

  std::filesystem::path folder_;
  std::string real_, kind_;
  std::vector<std::string> isas_;
  codegen::Precision precision_;
  std::size_t parts_, models_ = 0;
  std::map<std::string, std::string> sources_;
  std::string rows_;
};

}  // namespace tessera::test
