// write_probes DIR: generates the probe of every recipe (scalar kernels), and probes.h, which includes their headers.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "tests/recipes/recipes.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  std::string headers;
  auto probe = [&](const graph::Graph& traced) {
    codegen::GeneratorOptions options;
    options.targets = {codegen::cpu_targets.front()};
    for (const auto& [name, text] : codegen::generate(traced, options)) write(folder / name, text);
    headers += "#include \"" + traced.name + ".h\"\n";
  };
#define TESSERA_PROBE(name) probe(trace<Probe<recipes::name>>("probe_" #name));
  TESSERA_RECIPES(TESSERA_PROBE)
#undef TESSERA_PROBE
  write(folder / "probes.h", headers);
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_probes DIR\n";
    return 2;
  }
  try {
    return tessera::test::run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write_probes: " << error.what() << "\n";
    return 1;
  }
}
