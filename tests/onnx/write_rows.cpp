// write_rows DIR: generates the kernels of every row of row.hpp for all instruction sets, one entry point a row, as the
// files of one model called "rows", and a table of the entry points.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "codegen/cpu/file.hpp"
#include "tests/onnx/row_models.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

std::string table_of(const codegen::ModelFiles& m) {
  std::string out = "#include \"tests/onnx/kernels.hpp\"\n#include \"rows_kernels.h\"\n\n";
  out += "namespace tessera::test {\nnamespace {\nconst RowKernels table[] = {\n";
  for (const codegen::Plan& plan : m.plans) {
    const std::string function = "rows_" + plan.program.name;
    out += "    {\"" + plan.program.name + "\", " + std::to_string(plan.scratch.fixed) + ", " +
           std::to_string(plan.scratch.per_batch) + ", {\n";
    for (const codegen::Target& target : m.targets) {
      const std::string isa(target.name), entry = "        {\"" + isa + "\", " + function + "_" + isa + "},\n";
      const bool portable = target.family == codegen::Family::portable;
      const std::string guard = std::string("#if defined(__") + name_of(target.family) + "__)\n";
      out += portable ? entry : guard + entry + "#endif\n";
    }
    out += "    }},\n";
  }
  return out + "};\n}  // namespace\nstd::span<const RowKernels> row_kernels() { return table; }\n}\n";
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

int run(const fs::path& folder) {
  const codegen::ModelFiles m = row_models(codegen::targets_of(codegen::Precision::fp32));
  fs::create_directories(folder);
  write(folder / "rows_kernels.h", codegen::emit_kernels_header(m));
  for (const codegen::Target& target : m.targets)
    write(folder / ("rows_" + std::string(target.name) + ".cpp"),
          codegen::cpu::emit_file(m.name, m.plans, m.arena, m.packed, target, m.real));
  write(folder / "rows_table.cpp", table_of(m));
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  try {
    if (argc == 2) return tessera::test::run(argv[1]);
    std::cerr << "usage: " << argv[0] << " DIR" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
