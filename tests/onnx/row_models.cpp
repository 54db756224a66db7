#include "tests/onnx/row_models.hpp"

#include <stdexcept>

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
  codegen::Plan plan = codegen::make_plan(std::move(kernels), targets);
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

}  // namespace

codegen::ModelFiles row_models(const std::vector<codegen::Target>& targets) {
  codegen::ModelFiles m;
  m.name = "rows";
  m.targets = targets;
  std::vector<Row> rows = onnx_rows();
  for (Row& row : pytorch_rows()) rows.push_back(std::move(row));
  for (const Row& row : rows) {
    try {
      const RecordedRow recorded = row.record(row.name);
      add_parameters(m.arena, recorded);
      m.plans.push_back(planned(recorded.graph, row.name, targets));
    } catch (const std::exception& error) {
      throw std::runtime_error(row.name + ": " + error.what());
    }
  }
  return m;
}

}  // namespace tessera::test
