// Handwritten digits that the program draws itself, for training where no data set is at hand.
#pragma once

#include <cstdint>

#include "runtime/dataset.hpp"

namespace tessera::runtime {

/// `count` images [1, 28, 28] of the digits 0 to 9, light on dark as MNIST's. Each digit is a set of pen strokes in one
/// of several ways of writing it, bent, slanted, turned, scaled, shifted and drawn with a pen of varying width; the
/// paper has grain. Image i is a function of (seed, split, i) alone, with the same bytes on every machine.
Dataset draw_digits(std::int64_t count, std::uint64_t seed, Split split);

}  // namespace tessera::runtime
