// The Open Inference Protocol (KServe's version 2) in JSON: requests to tensors, tensors to responses.
// Source: https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime::serve {

/// An inference request: images [count, C, H, W] as the model reads them, normalised.
struct InferRequest {
  std::optional<std::string> id;
  std::int64_t count = 0;
  std::vector<float> images;
};

/// Reads the JSON of an inference request. Its one input is "images", FP32, [count, C, H, W], flat or nested; where it
/// names outputs, "outputs" alone. Throws a Refusal: 400 for what is none, 413 for more than `most_images` images.
InferRequest read_infer_request(const Model& model, std::string_view json, std::int64_t most_images);

/// The inference response: "outputs", FP32, [count, classes], in the shortest decimals that give the same floats.
/// Throws a Refusal, 500, where an output is not finite, for which JSON has no number.
std::string infer_response(const Model& model, const InferRequest& request, std::span<const float> outputs);

/// What GET v2/models/NAME tells.
std::string model_metadata(const Model& model);

/// {"model_name": NAME, "classes": [{"class": 3, "name": "cat", "probability": 0.98}, ...]}: the `top` likeliest, the
/// likeliest first. Throws a Refusal, 500, where a probability is not finite.
std::string classify_response(const Model& model, std::span<const float> outputs, std::int64_t top,
                              const std::vector<std::string>& names);

/// {"error": SENTENCE}.
std::string error_json(const std::string& sentence);

}  // namespace tessera::runtime::serve
