#include "runtime/inspect.hpp"

#include <algorithm>

#include "runtime/arena.hpp"
#include "runtime/evaluate.hpp"

namespace tessera::runtime {

Inspection inspect(const Model& model, const float* parameters, const float* packed, const float* image) {
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  const std::int64_t pixels = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  const Arena input = Arena::of_floats(pixels, model.alignment);
  const Arena maps = Arena::of_floats(model.attention.floats(), model.alignment);
  const Arena magnitudes = Arena::of_floats(layers, model.alignment);
  const Arena scratch(model.inspect_scratch_bytes(1), model.alignment);
  std::copy_n(image, pixels, input.floats());
  check(model,
        model.inspect(parameters, packed, input.floats(), 1, maps.floats(), magnitudes.floats(), scratch.data()));
  return {{maps.floats(), maps.floats() + model.attention.floats()},
          {magnitudes.floats(), magnitudes.floats() + layers}};
}

}  // namespace tessera::runtime
