// GEMMs of activations whose factors both lie along the axis that is summed, as queries and keys do.
#pragma once

#include <cstdint>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// Below this many columns, or products in a sum, a contraction is not worth being treated as a GEMM: lanes
/// are better spent on tokens or images.
inline constexpr std::int64_t least_n = 16;

/// In a product whose result has its columns from a factor that lies along the summed axis, that factor is copied with
/// the columns innermost: vectors of columns can then be loaded. Parameters are left to packing.
graph::Graph copy_operands_n_innermost(const graph::Graph& graph);

}  // namespace tessera::codegen
