#include "runtime/divergence.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

std::int64_t size(const tessera_parameter& row) { return elements(Shape(row.shape, row.shape + row.rank)); }

/// The number of the first block, from 1, whose attention to some image of the batch is not a number; 0: there is none.
std::int64_t first_block(const Model& model, const float* parameters, const Batch& batch) {
  const AttentionMaps& maps = model.attention;
  const std::int64_t image = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  const std::int64_t block = maps.heads * maps.rows * maps.columns;
  const Arena values = Arena::of_floats(maps.layers * block, model.alignment);
  const Arena input = Arena::of_floats(image, model.alignment), scratch(maps.scratch_bytes(1), model.alignment);
  const Arena weights = packed(model, parameters);
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < batch.size; ++i) {
    std::copy_n(batch.images + i * image, image, input.floats());
    check(model, maps.compute(parameters, weights.floats(), input.floats(), 1, values.floats(), scratch.data()));
    for (std::int64_t layer = 0; layer < (first == 0 ? maps.layers : first - 1); ++layer)
      if (!finite(values.floats() + layer * block, block)) first = layer + 1;
  }
  return first;
}

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
  if (model.attention.layers > 0) {
    if (const std::int64_t block = first_block(model, parameters, batch); block > 0)
      return text("the attention of block ", block, " of ", model.attention.layers,
                  " is the first that is not a number");
  }
  std::string key;
  float most = -1;
  for (const tessera_parameter& row : model.parameters)
    for (const float* value = parameters + row.offset; value < parameters + row.offset + size(row); ++value)
      if (std::abs(*value) > most) most = std::abs(*value), key = row.name;
  return text("all parameters ", model.attention.layers > 0 ? "and all attention " : "", "are numbers, the largest of ",
              key, " is ", shortest(most));
}

std::string cause_of_gradients(const Model& model, const float* gradients) {
  const tessera_parameter* first = nullptr;
  for (const tessera_parameter& row : model.parameters)
    if ((!first || row.offset < first->offset) && !finite(gradients + row.offset, size(row))) first = &row;
  return first ? text("the gradient of ", first->name, " is the first that is not a number") : "";
}

}  // namespace tessera::runtime
