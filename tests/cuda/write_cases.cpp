// write_cases DIR PARTS: generates every model of tests/kernels/generated_cases.hpp with its CUDA file into DIR, with
// PARTS sources part_N.cpp that hold the CUDA files and one, table.cpp, that lists the models.
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>

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

/// Everything that an emitted file includes, so that it is included outside the models' namespaces.
constexpr const char* headers = R"cpp(#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "tests/cuda/cuda_case.hpp"
#include "tests/cuda/host/device.hpp"

#define TESSERA_DEVICE_HEADER "tests/cuda/host/device.hpp"
)cpp";

std::string row(const std::string& name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  auto bytes = [&](const std::string& program) {
    return "[](std::int64_t batch) -> std::int64_t { return " + upper + "_CUDA_" + program +
           "_SCRATCH_BYTES(batch); }, ";
  };
  return "    {\"" + name + "\", {" + name + "_parameters, " + upper + "_PARAMETERS}, " + upper +
         "_PARAMETER_FLOATS, " + bytes("FORWARD") + bytes("TRAIN") + bytes("INPUT_GRADIENT") + name +
         "_cuda_forward, " + name + "_cuda_loss_and_gradients, " + name + "_cuda_input_gradient},\n";
}

int run(const fs::path& folder, std::size_t parts) {
  fs::create_directories(folder);
  std::vector<std::string> sources(parts, headers);
  std::string table = headers, rows;
  std::size_t count = 0;
  for (const GeneratedCase& c : generated_cases()) {
    Sketch sketch;
    c.record(sketch);
    sketch.graph.name = c.name;
    codegen::GeneratorOptions options;
    options.targets = {codegen::cpu_targets.front()};
    options.cuda = true;
    for (const auto& [file, text] : codegen::generate(sketch.graph, options)) write(folder / file, text);
    std::string& source = sources[count++ % parts];
    source += "\n#include \"" + c.name + ".h\"\nnamespace " + c.name + "_cpu {\n#include \"" + c.name +
              ".cpp\"\n#include \"" + c.name + "_scalar.cpp\"\n}\nnamespace " + c.name + "_gpu {\n#include \"" +
              c.name + "_cuda.cu\"\n}\n";
    table += "#include \"" + c.name + "_cuda.h\"\n";
    rows += row(c.name);
  }
  for (std::size_t i = 0; i < parts; ++i) write(folder / ("part_" + std::to_string(i) + ".cpp"), sources[i]);
  write(folder / "table.cpp", table + "\nnamespace tessera::test {\nnamespace {\nconst CudaCase cases[] = {\n" + rows +
                                  "};\n}  // namespace\nstd::span<const CudaCase> cuda_cases() { return cases; }\n}\n");
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  try {
    if (argc == 3) return tessera::test::run(argv[1], std::stoul(argv[2]));
    std::cerr << "usage: " << argv[0] << " DIR PARTS" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
