// The generated kernels of every row as the test calls them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace tessera::test {

struct RowKernels {
  using Function = void (*)(const float* parameters, const float* images, const std::int32_t* labels,
                            std::int64_t batch, float* outputs, float* loss, float* scratch);

  std::string row;
  std::int64_t scratch_reals, scratch_reals_of_image;
  /// By instruction set: those of this processor's family. The loss is not written.
  std::map<std::string, Function> functions;
};

/// In the order in which they were written; defined by the source that write_row_kernels writes.
std::span<const RowKernels> row_kernels();

}  // namespace tessera::test
