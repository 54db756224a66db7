// Weight gradients of convolutions: both factors run along what is summed over, and one of them is windows of a map.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// A convolution along one axis of a map.
struct ConvAxis {
  std::int64_t positions = 1;             ///< that are summed over
  std::int64_t taps = 1;                  ///< of the kernel
  std::int64_t step = 1;                  ///< from one position to the next, on the map
  std::int64_t dilation = 1;              ///< from one tap to the next
  std::int64_t left_step = 0;             ///< from one position to the next of the result's gradient, in values
  std::int64_t right_step = 0;            ///< between neighbours of the map, in values
  int position_axis = -1, tap_axis = -1;  ///< of the kernel; -1: it has one position, or tap
};

/// gradient[row, column, taps] = sum over images and positions of left[row, position] * map[column, window].
struct WindowGradient {
  const Access *left = nullptr, *right = nullptr;  ///< the result's gradient, and the map
  ConvAxis down, across;
};

/// A sum over the batch as such a gradient with these rows and columns, whose taps lie innermost where it is stored;
/// none: it is another contraction.
std::optional<WindowGradient> window_gradient(const Layouts& layouts, const Kernel& kernel, int rows, int columns);

}  // namespace tessera::codegen
