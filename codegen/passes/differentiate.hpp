// Reverse-mode differentiation of a whole graph.
#pragma once

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// One joint graph: the nodes of `forward`, with the same ids, then the gradients' nodes; for each parameter that is
/// trained an output of kind gradient, in the order in which they are finished, and one for each real input when
/// `input_gradient`. A backward node keeps the path of the op that it differentiates. For each region on the way to the
/// loss there is a reversed one that mirrors it: it carries the gradients of the carries, and adds up those of values
/// captured from the top level; gradients of parameters recorded in the region lie in the mirror, one a layer. Throws
/// Error when there is no loss, and when no gradient reaches a parameter: then what it computes is not used.
graph::Graph differentiate(const graph::Graph& forward, bool input_gradient);

/// Each node of op gradient becomes the nodes that compute it, appended where it stood; what they share with what
/// differentiate appends is computed once where value numbering runs behind both. Throws Error where y does not depend
/// on x, and where a repeated block lies between them.
graph::Graph expand_gradients(const graph::Graph& graph);

}  // namespace tessera::codegen
