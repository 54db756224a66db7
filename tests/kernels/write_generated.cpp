// write_generated DIR [few | fuzz SEED COUNT]: generates every model of generated_cases.hpp, in double for the scalar
// kernels and in float for all of them, into DIR, with a few sources that hold them all: so a compiler reads its
// headers once, not once a model. few: every third model, and no AVX-512. fuzz: random models in the place of those,
// and random Vision Transformers, in bf16, int8 and int4 as well, every other one without one of the passes.
#include <filesystem>
#include <iostream>
#include <string_view>

#include "tests/kernels/generated_cases.hpp"
#include "tests/kernels/generated_writer.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

/// The first pass from the `number`-th on, in circles, that changes what is generated for the case; "": none does.
std::string pass_to_leave_out(const GeneratedWriter& writer, const GeneratedCase& c, std::size_t number) {
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
  std::vector<GeneratedWriter> writers{{folder, "double", {"scalar"}}, {folder, "float", isas}};
  // Where a processor with AVX-512 compares them, tests/models does: here compiling them would take long.
  if (random)
    for (const codegen::Precision p : {codegen::Precision::bf16, codegen::Precision::int8, codegen::Precision::int4})
      writers.emplace_back(folder, "float", std::vector<std::string>{"scalar", "avx2"}, p);
  int failures = 0;
  const auto add = [&](const GeneratedCase& c, const std::string& without) {
    for (GeneratedWriter& writer : writers) writer.add(c, without);
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
  for (GeneratedWriter& writer : writers) writer.finish();
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
