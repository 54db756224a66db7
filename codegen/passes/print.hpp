// The graph as text: what --dump writes, and what people compare.
#pragma once

#include <string>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// One node a line, in order; a region's nodes stand indented below its head; outputs at the end.
///
///     %12 = einsum "bij,bjk->bik" %3, %7 : [B, N+1=50, D=8]   # blocks.{}.mhsa
std::string print(const graph::Graph& graph);

/// "a b (c d) -> a (b c) d", a letter for each atom.
std::string print(const graph::Rearrangement& r);

}  // namespace tessera::codegen
