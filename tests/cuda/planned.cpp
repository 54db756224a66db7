#include "tests/cuda/planned.hpp"

#include <map>
#include <set>
#include <utility>

#include "codegen/cuda/plan.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/passes/pipeline.hpp"

namespace tessera::test {

Arrays interpret_planned(const graph::Graph& traced, codegen::ProgramKind kind, std::int64_t batch, const Arrays& given,
                         const codegen::PassOptions& options) {
  using namespace codegen;
  graph::Graph graph = passed(passed(traced, declaration_passes()), narrowing_passes());
  graph = passed(passed(std::move(graph), program_passes(kind)), primitive_passes());
  KernelProgram kernels = lower(graph, kind);
  kernels.precision = Precision::bf16;
  const KernelProgram program = cuda::plan_for_gpu(std::move(kernels), options).program;
  std::map<graph::NodeId, std::size_t> kernel_of;
  for (std::size_t k = 0; k < program.kernels.size(); ++k)
    for (graph::NodeId node : program.kernels[k].nodes) kernel_of[node] = k;
  std::map<graph::NodeId, const Tensor*> rounded;
  std::set<graph::NodeId> exact;
  for (const Tensor& t : program.tensors)
    if (t.storage == Storage::scratch && t.element == DType::bf16)
      rounded[t.node] = &t;
    else
      exact.insert(t.node);
  const Rounds rounds = [&](graph::NodeId reader, graph::NodeId value) {
    const auto stored = rounded.find(value);
    if (stored == rounded.end()) return false;
    const auto mine = kernel_of.find(reader), theirs = kernel_of.find(value);
    if (mine != kernel_of.end() && theirs != kernel_of.end() && mine->second == theirs->second) return false;
    if (!exact.contains(value)) return true;
    // Beside single precision: what is kept of every layer for another region is the copy alone.
    return stored->second->slots > 1 && !stored->second->carry &&
           program.graph[reader].region != program.graph[value].region;
  };
  return interpret(program.graph, batch, given, Operands::bf16, rounds);
}

}  // namespace tessera::test
