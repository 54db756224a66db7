// write_rows DIR: generates the kernels of every row of row.hpp for all instruction sets, one entry point a row, as the
// files of one model called "rows", and a table of the entry points.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "codegen/cpu/file.hpp"
#include "codegen/emit/model.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/columns.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/onnx/row.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

/// The stages of codegen/driver.cpp for a program without loss and gradients.
codegen::Plan planned(const graph::Graph& recorded, const std::string& name) {
  codegen::verify(recorded);
  const graph::Graph declared = codegen::canonical_order(recorded);
  codegen::verify(declared);
  const graph::Graph primitive = codegen::bring_columns_innermost(codegen::simplify(codegen::decompose(declared)));
  codegen::verify(primitive);
  codegen::KernelProgram kernels = codegen::lower(primitive, name);
  codegen::verify(kernels);
  codegen::Plan plan = codegen::make_plan(std::move(kernels), codegen::cpu_targets);
  codegen::verify(plan);
  return plan;
}

/// Where the parameters of a row lie. Rows are run one at a time, so each row's begin at zero.
void add_parameters(codegen::Arena& arena, const RecordedRow& row) {
  auto input = row.inputs.begin();
  for (const graph::Node& n : row.graph.nodes) {
    if (n.op != graph::Op::parameter) continue;
    while (input->kind != RowInput::Kind::parameter) ++input;
    codegen::ArenaEntry entry;
    entry.key = n.name;
    entry.shape = n.shape;
    entry.reals = reals_of(n.shape);
    entry.offset = input++->offset;
    arena.entries.push_back(std::move(entry));
  }
}

std::string table_of(const codegen::ModelFiles& m) {
  std::string out = "#include \"tests/onnx/kernels.hpp\"\n#include \"rows_kernels.h\"\n\n";
  out += "namespace tessera::test {\nnamespace {\nconst RowKernels table[] = {\n";
  for (const codegen::Plan& plan : m.plans) {
    const std::string function = "rows_" + plan.program.name;
    out += "    {\"" + plan.program.name + "\", " + std::to_string(plan.scratch.fixed) + ", " +
           std::to_string(plan.scratch.per_batch) + ", {{" + function + "_scalar,\n#if defined(__x86_64__)\n" +
           function + "_avx2, " + function + "_avx512\n#endif\n}}},\n";
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
  codegen::ModelFiles m;
  m.name = "rows";
  m.targets = codegen::cpu_targets;
  bool failed = false;
  std::vector<Row> rows = onnx_rows();
  for (Row& row : pytorch_rows()) rows.push_back(std::move(row));
  for (const Row& row : rows) {
    try {
      const RecordedRow recorded = row.record(row.name);
      add_parameters(m.arena, recorded);
      m.plans.push_back(planned(recorded.graph, row.name));
    } catch (const std::exception& error) {
      std::cerr << row.name << ": " << error.what() << std::endl;
      failed = true;
    }
  }
  if (failed) return 1;
  fs::create_directories(folder);
  write(folder / "rows_kernels.h", codegen::emit_kernels_header(m));
  for (const codegen::Target& target : m.targets)
    write(folder / ("rows_" + target.name + ".cpp"),
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
