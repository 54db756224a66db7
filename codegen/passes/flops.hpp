// What a graph computes, counted.
#pragma once

#include <map>
#include <string>

#include "codegen/extent.hpp"
#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The floating-point operations of one run of a graph, as a polynomial in the batch:
///   einsum            2 for each multiply-add (1 for each product where nothing is summed, 1 for each element that is
///                     summed where there is one operand)
///   elementwise       1 for each element of the result: an exp counts as an addition does
///   reductions        1 for each element that they read
///   everything else   0: it moves numbers
/// The nodes of a region count once a layer. Composites have to be taken apart by decompose() and count as what they
/// are made of; simplify() before it leaves out what is computed twice or for nobody. What a kernel computes again
/// rather than keeping it is not counted. Throws Error for a composite, and for a count that is not linear in the
/// batch.
///
/// Multiply-adds ("MACs" or, in some papers, "FLOPs") are half of the einsums' share.
Extent flops(const graph::Graph& primitive);

/// The same of one of its nodes, in one layer.
Extent flops(const graph::Graph& primitive, const graph::Node& node);

/// The same by the module that recorded the nodes, all layers together; "" is the model itself.
std::map<std::string, Extent> flops_by_module(const graph::Graph& primitive);

}  // namespace tessera::codegen
