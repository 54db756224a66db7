// Plans of declared models, made as the generator makes them.
#pragma once

#include <utility>
#include <vector>

#include "codegen/kernels/lower.hpp"
#include "codegen/passes/canonical_order.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::test {

inline codegen::Plan planned(const graph::Graph& graph, codegen::ProgramKind kind) {
  return codegen::make_plan(codegen::lower(codegen::simplify(codegen::decompose(graph)), kind),
                            codegen::targets_of(codegen::Precision::fp32));
}

/// As the generator plans the forward pass of a declared model.
inline codegen::Plan forward_pass(const graph::Graph& declared,
                                  codegen::Precision precision = codegen::Precision::fp32) {
  const graph::Graph outputs = codegen::subgraph(codegen::canonical_order(declared), {"outputs"});
  const graph::Graph primitive = codegen::copy_operands_n_innermost(codegen::simplify(codegen::decompose(outputs)));
  codegen::KernelProgram program = codegen::lower(primitive, codegen::ProgramKind::forward);
  program.precision = precision;
  return codegen::make_plan(std::move(program), codegen::targets_of(precision));
}

/// As the generator plans the gradients of a declared model, in which probabilities are recomputed.
inline codegen::Plan gradients_of(const graph::Graph& declared, const codegen::PassOptions& options = {},
                                  codegen::Precision precision = codegen::Precision::fp32) {
  constexpr auto kind = codegen::ProgramKind::loss_and_gradients;
  const graph::Graph primitive = codegen::passed(
      codegen::passed(
          codegen::passed(codegen::passed(declared, codegen::declaration_passes()), codegen::program_passes(kind)),
          codegen::primitive_passes()),
      codegen::cpu_graph_passes());
  codegen::KernelProgram program = codegen::lower(primitive, kind);
  program.precision = precision;
  return codegen::make_plan(std::move(program), codegen::targets_of(precision), options);
}

/// Forward, evaluation and training step of a declared model.
inline std::vector<codegen::Plan> plans(const graph::Graph& declared) {
  const graph::Graph graph = codegen::canonical_order(declared);
  std::vector<codegen::Plan> all;
  all.push_back(planned(codegen::subgraph(graph, {"outputs"}), codegen::ProgramKind::forward));
  all.push_back(planned(graph, codegen::ProgramKind::evaluate));
  all.push_back(planned(codegen::differentiate(graph, false), codegen::ProgramKind::loss_and_gradients));
  return all;
}

}  // namespace tessera::test
