// The generated kernels of every row as the test calls them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tessera::test {

inline constexpr std::array<const char*, 3> instruction_sets{"scalar", "avx2", "avx512"};

struct RowKernels {
  using Function = void (*)(const float* parameters, const float* images, const std::int32_t* labels,
                            std::int64_t batch, float* outputs, float* loss, float* scratch);

  std::string row;
  std::int64_t scratch_reals, scratch_reals_of_image;
  /// One for each instruction set; null where this processor's family has none. The loss is not written.
  std::array<Function, instruction_sets.size()> functions;
};

/// In the order of onnx_rows() and then pytorch_rows(); defined by the source that write_rows writes.
std::span<const RowKernels> row_kernels();

}  // namespace tessera::test
