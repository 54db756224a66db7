// The passes over graphs, from what was traced to what kernels are made of: lists, in the order in which they run.
#pragma once

#include <vector>

#include "codegen/passes/pass.hpp"
#include "codegen/program_kind.hpp"

namespace tessera::codegen {

using GraphPass = PassOver<graph::Graph>;

/// Over what was traced: one order of nodes for one declaration.
std::vector<GraphPass> declaration_passes();
/// Over the declaration, for programs of whose tokens some are not needed: all but inspect and embed.
std::vector<GraphPass> narrowing_passes();
/// From a declaration to the graph of one of its programs, in composites: any but update.
std::vector<GraphPass> program_passes(ProgramKind kind);
/// From there to primitives: what CUDA's kernels are made of.
std::vector<GraphPass> primitive_passes();
/// From there to what a CPU's kernels are made of.
std::vector<GraphPass> cpu_graph_passes();

/// Whether the declaration says what training makes small. Without it there is a forward pass alone.
bool has_loss(const graph::Graph& declared);

/// Whether training takes probabilities, "targets" [batch, classes], in the place of labels.
bool softens(const graph::Recipe& recipe);

/// The graph behind these passes.
graph::Graph passed(graph::Graph graph, const std::vector<GraphPass>& passes, const PassOptions& options = {});

}  // namespace tessera::codegen
