// Texts that are part of the generator and end up inside emitted files.
#pragma once

#include <string_view>

namespace tessera::codegen {

/// The text of a support header, by its path below codegen/: embedded("cpu/simd/avx2.h").
/// Throws std::out_of_range for a name that was not there when the generator was built.
std::string_view embedded(std::string_view name);

}  // namespace tessera::codegen
