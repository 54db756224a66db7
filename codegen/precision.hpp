// What the operands of GEMMs are rounded to.
#pragma once

#include <array>
#include <cstdint>

namespace tessera::codegen {

/// What the factors of GEMMs are rounded to; int8: of those with a parameter alone. Sums, everything else and
/// what is stored between programs (parameters, gradients, optimiser state) are of single precision whatever it is.
enum class Precision : std::uint8_t { fp32, bf16, int8 };
inline constexpr std::array precisions{Precision::fp32, Precision::bf16, Precision::int8};
constexpr const char* name_of(Precision p) {
  return p == Precision::int8 ? "int8" : p == Precision::bf16 ? "bf16" : "fp32";
}

}  // namespace tessera::codegen
