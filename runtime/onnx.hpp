// A model as an ONNX file: what `export --onnx` writes, for whoever runs models without Tessera.
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/checkpoint.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Writes the model's forward pass with these parameters (F32, under their keys) as an ONNX file, IR version 8, opset
/// 17; all or nothing, equal bytes for equal parameters. images [B, C, H, W] go in, outputs [B, classes] come out, for
/// any B. Metadata: name and declaration hash of the model, "input_height" and "input_width", what `usage` says under
/// its keys in safetensors files, and "outputs", "probabilities" or "logits". Where the file would have more than
/// `limit` bytes, as protobuf has no larger ones, its numbers lie in a second file, onnx_data(path), which is written
/// first, whole, and is found by its name beside the first. Returns whether there is one. Throws an Error where a
/// parameter holds what is no number.
///
/// The structure is `model.onnx`, a statement a line; a line that begins with a blank goes on with the one before.
///     input NAME TYPE DIM...            fed by the caller; the last word of a shape's unknown dim is its name
///     output NAME TYPE DIM...
///     float NAME DIM... : NUMBER...     a constant; int64 alike
///     NAME = OP NAME... KEY=VALUE...    a node; a value is 1, 1.5f, [1,2] or "text"
///     layers N                          what follows up to `end` stands N times, {} being the layer, {8} 8 more
///     carry NAME FIRST YIELD            in the first layer NAME is FIRST, in others YIELD of the layer before
/// Names that nothing makes are those of parameters.
bool export_onnx(const std::filesystem::path& path, const Model& model, const float* parameters, const Usage& usage,
                 std::uint64_t limit = (std::uint64_t{1} << 31) - 1);

/// "NAME.data" beside the ONNX file NAME.
std::filesystem::path onnx_data(std::filesystem::path path);

}  // namespace tessera::runtime
