// The forward pass in the words of ONNX, as text: what the runtime puts a checkpoint's weights into.
#pragma once

#include <string>

#include "dsl/graph/graph.hpp"

namespace tessera::codegen {

/// The declared forward pass, without dropout, as operators of ONNX's opset 17, a line each; runtime/onnx.hpp says how
/// they are written. Throws Error for what opset 17 has no operators for: an einsum of more than 52 letters.
std::string onnx_text(const graph::Graph& declared);

}  // namespace tessera::codegen
