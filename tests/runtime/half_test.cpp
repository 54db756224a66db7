#include "runtime/half.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// All that binary16 can be, by the standard's formula.
double by_formula(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

TEST(Half, EveryFloat16IsReadExactly) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const double want = by_formula(static_cast<std::uint16_t>(bits));
    const auto got = static_cast<double>(from_float16(static_cast<std::uint16_t>(bits)));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(want)) << bits;
    }
  }
}

TEST(Half, WhatIsReadIsWrittenAsItWas) {
  for (std::uint32_t wide = 0; wide < 65536; ++wide) {
    const auto bits = static_cast<std::uint16_t>(wide);
    if (std::isnan(from_float16(bits)))
      EXPECT_TRUE(std::isnan(from_float16(to_float16(from_float16(bits))))) << bits;
    else
      EXPECT_EQ(to_float16(from_float16(bits)), bits);
    if (std::isnan(from_bfloat16(bits)))
      EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(from_bfloat16(bits))))) << bits;
    else
      EXPECT_EQ(to_bfloat16(from_bfloat16(bits)), bits);
  }
}

TEST(Half, NumbersAreRoundedAsPyTorchRoundsThem) {
  const Safetensors golden = read_safetensors(std::filesystem::path(paths::golden) / "halves" / "halves.safetensors");
  const std::vector<float> values = golden.at("values").floats();
  const std::vector<std::int64_t> half = golden.at("F16").integers(), brain = golden.at("BF16").integers();
  ASSERT_GT(values.size(), 1000u);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(to_float16(values[i]), half[i]) << values[i];
    EXPECT_EQ(to_bfloat16(values[i]), brain[i]) << values[i];
  }
}

TEST(Half, TensorsOfEveryRealTypeAreReadAsFloats) {
  const std::vector<float> numbers{1, -2.5, 0, std::ldexp(1.0f, -24), std::numeric_limits<float>::infinity()};
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const Tensor tensor = Tensor::of(dtype, {5}, numbers);
    EXPECT_EQ(tensor.dtype, dtype);
    EXPECT_TRUE(tensor.is_real());
    EXPECT_EQ(tensor.floats(), numbers);
  }
  EXPECT_EQ(Tensor::of({1}, std::vector<double>{0.1}).floats(), std::vector<float>{0.1f});
  EXPECT_EQ(sentence([&] { Tensor::of("I8", {5}, numbers); }), "numbers cannot be written as 'I8'");
}

}  // namespace
}  // namespace tessera::runtime
