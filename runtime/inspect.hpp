// What goes on inside a model for one image.
#pragma once

#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

struct Inspection {
  std::vector<float> maps;        ///< [attention.layers, heads, rows, columns]; rows sum to one
  std::vector<float> magnitudes;  ///< by layer of Model::layers: the mean of |x| of what it gives
};

/// Runs the model for one image, `packed` being the packed parameters.
Inspection inspect(const Model& model, const float* parameters, const float* packed, const float* image);

}  // namespace tessera::runtime
