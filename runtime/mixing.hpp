// Labels as probabilities: smoothed, and of images that are blended with or pasted into each other.
#pragma once

#include <cstdint>

#include "runtime/model.hpp"
#include "runtime/philox.hpp"

namespace tessera::runtime {

/// A draw from the Beta distribution with both parameters alpha > 0. Source: Joehnk 1964 for alpha <= 1, else Cheng's
/// algorithm BB in its symmetric form (1978).
double beta(double alpha, Random& random);

/// Turns labels into targets [size, classes] and mixes the images [size, channels, height, width] of a batch with those
/// of the batch read backwards, by mixup or cutmix (by either with equal chances where the recipe has both). A target
/// is the share of each image, smoothed.
void mix(const Recipe& recipe, std::int64_t size, std::int64_t channels, std::int64_t height, std::int64_t width,
         std::int64_t classes, const std::int32_t* labels, float* images, float* targets, Random& random);

}  // namespace tessera::runtime
