// write_cases DIR PARTS: generates every model of tests/kernels/generated_cases.hpp with its CUDA file into DIR (those
// with matrix products a second time as NAME_bf16, with factors of bf16), with PARTS sources part_N.cpp that hold the
// CUDA files and one, table.cpp, that lists the models.
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
#if defined(__unix__)
#include <unistd.h>
#endif

#include "tests/cuda/cuda_case.hpp"
#include "tests/cuda/host/device.hpp"

#define TESSERA_DEVICE_HEADER "tests/cuda/host/device.hpp"
)cpp";

/// `model` is `name` itself, or as `name`_bf16 emitted with factors of bf16: its parameters are the same.
std::string row(const std::string& name, const std::string& model, bool by_warpgroups) {
  auto upper = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
  auto bytes = [&](const std::string& program) {
    return "[](std::int64_t batch) -> std::int64_t { return " + upper(model) + "_CUDA_" + program +
           "_SCRATCH_BYTES(batch); }, ";
  };
  return "    {\"" + model + "\", {" + name + "_parameters, " + upper(name) + "_PARAMETERS}, " + upper(name) +
         "_PARAMETER_FLOATS, " + (by_warpgroups ? "true, " : "false, ") + upper(model) + "_CUDA_PACKED_BYTES, " +
         bytes("FORWARD") + bytes("TRAIN") + bytes("INPUT_GRADIENT") + model + "_cuda_pack, " + model +
         "_cuda_forward, " + model + "_cuda_loss_and_gradients, " + model + "_cuda_input_gradient},\n";
}

/// Writes the files of a case, and returns the text of its kernels.
std::string generate_case(const fs::path& folder, const GeneratedCase& c, const std::string& name,
                          codegen::Precision precision) {
  Sketch sketch;
  c.record(sketch);
  sketch.graph.name = name;
  codegen::GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  options.precision = precision;
  options.tiles = {{"wgmma:", "64x128"}};  // which such sizes do not suggest
  const std::map<std::string, std::string> files = codegen::generate(sketch.graph, options);
  for (const auto& [file, text] : files) write(folder / file, text);
  return files.at(name + "_cuda.cu");
}

int run(const fs::path& folder, std::size_t parts) {
  fs::create_directories(folder);
  std::vector<std::string> sources(parts, headers);
  std::string table = headers, rows;
  std::size_t count = 0;
  for (const GeneratedCase& c : generated_cases()) {
    std::string& source = sources[count++ % parts];
    auto add = [&](const std::string& name, bool by_warpgroups = false) {
      source += "namespace " + name + "_gpu {\n#include \"" + name + "_cuda.cu\"\n}\n";
      table += "#include \"" + name + "_cuda.h\"\n";
      rows += row(c.name, name, by_warpgroups);
    };
    generate_case(folder, c, c.name, codegen::Precision::fp32);
    source += "\n#include \"" + c.name + ".h\"\nnamespace " + c.name + "_cpu {\n#include \"" + c.name +
              ".cpp\"\n#include \"" + c.name + "_scalar.cpp\"\n}\n";
    add(c.name);
    // It is about lanes of the CPU in single precision; in bf16 a bias adds up what is stored rounded for the weight's
    // gradient beside it, 6e-4 from the interpreter, which adds up what is not.
    if (c.name == "convolutions_of_narrow_maps") continue;
    // Where nothing is rounded, the kernels are those above.
    const std::string rounded = c.name + "_bf16";
    const std::string kernels = generate_case(folder, c, rounded, codegen::Precision::bf16);
    if (kernels.find(" tensor_product<") != std::string::npos)
      add(rounded, kernels.find(" warpgroup_product<") != std::string::npos);
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
