// Numbers of two bytes: IEEE 754 binary16 ("F16") and bfloat16 ("BF16", the upper half of a float).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::runtime {

/// Exact: every bfloat16 is a float.
inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// Exact: every binary16 is a float, the subnormal ones too.
inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 31u,
                      fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
  return sign ? -size : size;
}

/// The nearest bfloat16, the even one of two that are as near; what is not a number stays none.
/// PyTorch equivalent: tensor.to(torch.bfloat16)
inline std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// The nearest binary16, the even one of two that are as near; from 65520 on that is infinity.
/// PyTorch equivalent: tensor.to(torch.float16)
inline std::uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | (size >> 13 & 0x1ffu));
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (size < 0x38800000u)  // subnormal: a multiple of 2^-24, which nearbyint rounds to even
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(size), 24))));
  return static_cast<std::uint16_t>(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
}

}  // namespace tessera::runtime
