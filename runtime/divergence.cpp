#include "runtime/divergence.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/error.hpp"
#include "runtime/inference.hpp"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

std::int64_t size(const tessera_parameter& row) { return elements(Shape(row.shape, row.shape + row.rank)); }

}  // namespace

bool finite(const float* first, std::int64_t count) {
  return std::all_of(first, first + count, [](float value) { return std::isfinite(value); });
}

std::string first_not_finite(const Model& model, const float* parameters) {
  const tessera_parameter* first = nullptr;
  for (const tessera_parameter& row : model.parameters)
    if ((!first || row.offset > first->offset) && !finite(parameters + row.offset, size(row))) first = &row;
  return first ? first->name : "";
}

std::string cause_of_loss(const Model& model, const float* parameters, const Batch& batch) {
  if (const std::string key = first_not_finite(model, parameters); !key.empty())
    return "the parameter " + key + " is the first that is not a number";
  const std::int64_t image = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  const Inference inference(model, parameters, 1, nullptr);
  std::vector<float> most(model.layers.size());  // of any image
  for (std::int64_t i = 0; i < batch.size; ++i) {
    const Inspection seen = inference.inspect(batch.images + i * image);
    for (std::size_t layer = 0; layer < most.size(); ++layer)
      if (!(seen.magnitudes[layer] <= most[layer])) most[layer] = seen.magnitudes[layer];
  }
  for (std::size_t layer = 0; layer < most.size(); ++layer)
    if (!std::isfinite(most[layer]))
      return text("what ", model.layers[layer], " gives is the first that is not a number");
  const auto largest = std::max_element(most.begin(), most.end());
  return text("all layers give numbers, the largest ", model.layers[static_cast<std::size_t>(largest - most.begin())],
              ", ", shortest(*largest), " on average");
}

std::string cause_of_gradients(const Model& model, const float* gradients) {
  const tessera_parameter* first = nullptr;
  for (const tessera_parameter& row : model.parameters)
    if ((!first || row.offset < first->offset) && !finite(gradients + row.offset, size(row))) first = &row;
  return first ? text("the gradient of ", first->name, " is the first that is not a number") : "";
}

}  // namespace tessera::runtime
