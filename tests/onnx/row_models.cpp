#include "tests/onnx/row_models.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "codegen/cpu/file.hpp"
#include "codegen/emit/header.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/verify.hpp"
#include "tests/onnx/row.hpp"

namespace tessera::test {
namespace {

/// The stages of codegen/driver.cpp. Each row takes labels, as programs with a loss do, and gives none.
codegen::Plan planned(const graph::Graph& recorded, const std::string& name,
                      const std::vector<codegen::Target>& targets) {
  codegen::verify(recorded);
  const graph::Graph declared = codegen::canonical_order(recorded);
  codegen::verify(declared);
  const graph::Graph primitive = codegen::copy_operands_n_innermost(codegen::simplify(codegen::decompose(declared)));
  codegen::verify(primitive);
  codegen::KernelProgram kernels = codegen::lower(primitive, codegen::ProgramKind::evaluate, name);
  codegen::verify(kernels);
  codegen::Plan plan = codegen::make_plan(kernels, targets);
  const auto is_packed = [](const codegen::Tensor& t) { return t.storage == codegen::Storage::packed; };
  if (std::any_of(plan.program.tensors.begin(), plan.program.tensors.end(), is_packed)) {
    codegen::PassOptions loops;  // a row has its parameters as they are: products that pack them stay loops
    loops.disabled = {"matrix_products"};
    plan = codegen::make_plan(std::move(kernels), targets, loops);
  }
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
  std::string out = "#include \"tests/onnx/kernels.hpp\"\n#include \"" + m.name + "_kernels.h\"\n\n";
  out += "namespace tessera::test {\nnamespace {\nconst RowKernels table[] = {\n";
  for (const codegen::Plan& plan : m.plans) {
    const std::string function = m.name + "_" + plan.program.name;
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

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

codegen::ModelFiles row_models(const std::string& name, const std::vector<RecordedRow>& rows,
                               const std::vector<codegen::Target>& targets) {
  codegen::ModelFiles m;
  m.name = name;
  m.targets = targets;
  for (const RecordedRow& row : rows) try {
      add_parameters(m.arena, row);
      m.plans.push_back(planned(row.graph, row.graph.name, targets));
    } catch (const std::exception& error) {
      throw std::runtime_error(row.graph.name + ": " + error.what());
    }
  return m;
}

void write_row_kernels(const std::filesystem::path& folder, const codegen::ModelFiles& m) {
  std::filesystem::create_directories(folder);
  write(folder / (m.name + "_kernels.h"), codegen::emit_kernels_header(m));
  for (const codegen::Target& target : m.targets)
    write(folder / (m.name + "_" + std::string(target.name) + ".cpp"),
          codegen::cpu::emit_file(m.name, m.plans, m.arena, m.packed, target, m.real));
  write(folder / (m.name + "_table.cpp"), table_of(m));
}

}  // namespace tessera::test
