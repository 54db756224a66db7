// What a model looks at, drawn over the picture it looks at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/gpu.hpp"
#include "runtime/image.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Attention rollout (Abnar, Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3): how much of each
/// input token is in each token after the last block, if attention and the residual connections, in equal parts, are
/// all that moves it. maps [layers, heads, tokens, tokens] -> [tokens, tokens], rows summing to one.
std::vector<double> rollout(std::span<const float> maps, std::int64_t layers, std::int64_t heads, std::int64_t tokens);

/// One number for each patch, [rows, columns] of the model's grid, and what it says.
struct PatchMap {
  std::string title;
  std::vector<double> weights;
};

/// What the class token attends to, first over all blocks by rollout, then in each head of the last block, and what the
/// learned query of a pooling attends to, in each of its heads. Where the model has no class token, it is the mean over
/// all tokens. Tokens that are no patches stand before those that are.
/// `input` is one image as the model reads it, which it does on the GPU or, where it is null, on the CPU. Throws an
/// Error when the model has no attention maps, or none that can be laid over a picture.
std::vector<PatchMap> attention(const Model& model, const float* parameters, const float* input, const Gpu* gpu);

/// The photo, and the photo below each map in the colours of heat, from the 2nd percentile of its weights to the 98th:
/// as a PNG file, or as an SVG with titles, the model's answer, ranges and a colour scale.
Bytes attention_png(const Image& photo, const std::vector<PatchMap>& maps, const Grid& grid);
std::string attention_svg(const Image& photo, const std::vector<PatchMap>& maps, const Grid& grid,
                          const std::string& title, const std::string& answer);

}  // namespace tessera::runtime
