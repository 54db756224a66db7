// What the operands of GEMMs are rounded to.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera::codegen {

/// What the factors of GEMMs are rounded to; int8 and int4: of those with a parameter alone. int4: the parameters;
/// what they meet is int8. Sums, everything else and what is stored between programs (parameters, gradients, optimiser
/// state) are of single precision whatever it is.
enum class Precision : std::uint8_t { fp32, bf16, int8, int4 };
inline constexpr std::array precisions{Precision::fp32, Precision::bf16, Precision::int8, Precision::int4};
constexpr const char* name_of(Precision p) {
  constexpr std::array names{"fp32", "bf16", "int8", "int4"};
  return names.at(static_cast<std::size_t>(p));
}
/// Whether factors become integers times scales: of inference alone, since gradients need more than eight bits.
constexpr bool quantizes(Precision p) { return p == Precision::int8 || p == Precision::int4; }

}  // namespace tessera::codegen
