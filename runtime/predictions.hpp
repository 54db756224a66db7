// A picture of what a model says about sample images.
#pragma once

#include <string>
#include <vector>

#include "runtime/dataset.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/html.hpp"

namespace tessera::runtime {

/// An SVG with the first images of the set and, below, the mistakes the model was surest of: each with the answer, its
/// probability and, where it is wrong, the truth.
std::string predictions_svg(const Dataset& data, const Evaluation& evaluation, const std::string& title);

/// The same as a picture for each image, which a page lays out as wide as it is.
std::vector<Tiles> prediction_tiles(const Dataset& data, const Evaluation& evaluation);

}  // namespace tessera::runtime
