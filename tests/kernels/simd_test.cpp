// Accuracy and tails of the vector support text, for every instruction set that this processor has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <vector>

#include "codegen/isa.hpp"
#include "runtime/philox.hpp"
#include "tests/kernels/simd_table.hpp"

namespace tessera::test {

/// How GoogleTest shows a table: otherwise as its bytes, which are addresses and differ from run to run.
void PrintTo(const SimdTable& table, std::ostream* out) { *out << table.isa; }

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

float from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// The distance of two neighbours at the magnitude of x; of denormals below the smallest normal number.
double ulp(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// Every `stride`-th float of both signs with from <= |x| <= to.
std::vector<float> floats(float from, float to, std::uint32_t stride, bool negative = true) {
  std::uint32_t first, last;
  std::memcpy(&first, &from, sizeof first);
  std::memcpy(&last, &to, sizeof last);
  std::vector<float> xs;
  for (std::uint32_t bits = first; bits <= last; bits += stride) {
    xs.push_back(from_bits(bits));
    if (negative) xs.push_back(-from_bits(bits));
  }
  return xs;
}

class Simd : public testing::TestWithParam<SimdTable> {
 protected:
  void SetUp() override {
    if (!GetParam().supported()) GTEST_SKIP() << "this processor has no " << GetParam().isa;
  }

  /// The largest error over xs in ulps of the exact value.
  double worst(Unary function, double (*exact)(double), const std::vector<float>& xs, const char* name) {
    std::vector<float> ys(xs.size());
    function(xs.data(), ys.data(), static_cast<int>(xs.size()));
    double most = 0;
    float where = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double y = exact(xs[i]);
      if (std::fabs(y) > std::numeric_limits<float>::max()) continue;
      const double error = std::fabs(ys[i] - y) / ulp(y);
      if (!(error <= most)) most = error, where = xs[i];
    }
    RecordProperty(name, std::to_string(most));
    std::printf("  %s %s: largest error %.3f ulp, at %.9g, of %zu numbers\n", GetParam().isa, name, most,
                static_cast<double>(where), xs.size());
    return most;
  }
  float at(Unary function, float x) {
    float y;
    function(&x, &y, 1);
    return y;
  }
};

TEST_P(Simd, ExpIsWithinTwoUlpDownToTheDenormals) {
  EXPECT_LE(worst(GetParam().exp, std::exp, floats(1e-30f, 88.7f, 211), "exp"), 2);
  EXPECT_LE(worst(GetParam().exp, std::exp, floats(87.0f, 110.0f, 1), "exp of large numbers"), 2);
}

TEST_P(Simd, ExpHasItsLimitsAtItsEnds) {
  EXPECT_EQ(at(GetParam().exp, -infinity), 0);
  EXPECT_EQ(at(GetParam().exp, -1000), 0);
  EXPECT_EQ(at(GetParam().exp, 0), 1);
  EXPECT_EQ(at(GetParam().exp, 100), infinity);
  EXPECT_EQ(at(GetParam().exp, infinity), infinity);
  EXPECT_TRUE(std::isnan(at(GetParam().exp, not_a_number)));
}

TEST_P(Simd, LogIsWithinTwoUlpAlsoNearOneAndOfDenormals) {
  EXPECT_LE(worst(GetParam().log, std::log, floats(1e-45f, 3e38f, 499, false), "log"), 2);
  EXPECT_LE(worst(GetParam().log, std::log, floats(0.5f, 2.0f, 5, false), "log near 1"), 2);
}

TEST_P(Simd, LogHasItsLimitsAtItsEnds) {
  EXPECT_EQ(at(GetParam().log, 0), -infinity);
  EXPECT_EQ(at(GetParam().log, 1), 0);
  EXPECT_EQ(at(GetParam().log, infinity), infinity);
  EXPECT_TRUE(std::isnan(at(GetParam().log, -1)));
  EXPECT_TRUE(std::isnan(at(GetParam().log, -infinity)));
  EXPECT_TRUE(std::isnan(at(GetParam().log, not_a_number)));
}

TEST_P(Simd, TanhIsWithinThreeUlpAndSaturates) {
  EXPECT_LE(worst(GetParam().tanh, std::tanh, floats(1e-30f, 30.0f, 97), "tanh"), 3);
  EXPECT_EQ(at(GetParam().tanh, infinity), 1);
  EXPECT_EQ(at(GetParam().tanh, -infinity), -1);
  EXPECT_TRUE(std::isnan(at(GetParam().tanh, not_a_number)));
}

TEST_P(Simd, ErfIsWithinTwoUlpAndSaturates) {
  EXPECT_LE(worst(GetParam().erf, std::erf, floats(1e-30f, 10.0f, 97), "erf"), 2);
  EXPECT_EQ(at(GetParam().erf, infinity), 1);
  EXPECT_EQ(at(GetParam().erf, -infinity), -1);
  EXPECT_TRUE(std::isnan(at(GetParam().erf, not_a_number)));
}

TEST_P(Simd, SineAndCosineAreWithinTwoRoundingsOfOneTo8192) {
  for (const auto& [function, exact] : {std::pair<Unary, double (*)(double)>{GetParam().sin, std::sin},
                                        std::pair<Unary, double (*)(double)>{GetParam().cos, std::cos}}) {
    std::vector<float> xs = floats(1e-20f, 8192.0f, 9973);
    for (int n = -2607; n <= 2607; ++n) xs.push_back(static_cast<float>(n * 1.5707963267948966));  // to 4095
    std::vector<float> ys(xs.size());
    function(xs.data(), ys.data(), static_cast<int>(xs.size()));
    double most = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) most = std::max(most, std::fabs(ys[i] - exact(xs[i])));
    EXPECT_LE(most, 2e-7);
    EXPECT_TRUE(std::isnan(at(function, infinity)));
    EXPECT_TRUE(std::isnan(at(function, not_a_number)));
    EXPECT_LE(std::fabs(at(function, 1e30f)), 1.001f) << "digits are lost, but it is no large number";
  }
  EXPECT_EQ(at(GetParam().sin, 0), 0);
  EXPECT_EQ(at(GetParam().cos, 0), 1);
}

double gelu(double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double gelu_gradient(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
}

TEST_P(Simd, GeluAndItsGradientAreWithinAFewRoundingsOfOneNumber) {
  // Phi cancels for negative x, so the error is measured against max(1, |x|), as in every erf-based form.
  const std::vector<float> xs = floats(1e-20f, 40.0f, 97);
  std::vector<float> ys(xs.size()), gradients(xs.size());
  GetParam().gelu(xs.data(), ys.data(), static_cast<int>(xs.size()));
  GetParam().gelu_gradient(xs.data(), gradients.data(), static_cast<int>(xs.size()));
  double most = 0, most_gradient = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double size = std::max(1.0, std::fabs(static_cast<double>(xs[i])));
    most = std::max(most, std::fabs(ys[i] - gelu(xs[i])) / size);
    most_gradient = std::max(most_gradient, std::fabs(gradients[i] - gelu_gradient(xs[i])));
  }
  EXPECT_LE(most, 2e-7);
  EXPECT_LE(most_gradient, 3e-7);
  EXPECT_LE(worst(GetParam().gelu, gelu, floats(1e-20f, 8.0f, 97, false), "gelu of positive numbers"), 3);
}

TEST_P(Simd, GeluAndItsGradientHaveTheirLimitsAtTheirEnds) {
  EXPECT_EQ(at(GetParam().gelu, -infinity), 0);
  EXPECT_EQ(at(GetParam().gelu, -1000), 0);
  EXPECT_EQ(at(GetParam().gelu, infinity), infinity);
  EXPECT_NEAR(at(GetParam().gelu_gradient, -infinity), 0, 3e-7);
  EXPECT_NEAR(at(GetParam().gelu_gradient, infinity), 1, 3e-7);
  EXPECT_TRUE(std::isnan(at(GetParam().gelu, not_a_number)));
  EXPECT_TRUE(std::isnan(at(GetParam().gelu_gradient, not_a_number)));
}

TEST_P(Simd, ArithmeticAgreesWithTheLanguageForEveryTail) {
  for (int count = 0; count <= 2 * GetParam().lanes + 1; ++count) {
    std::vector<float> a, b, c;
    for (int i = 0; i < count; ++i)
      a.push_back(0.5f * i + 1), b.push_back(3.0f - i), c.push_back(i % 3 ? -1.0f : 0.25f);
    const auto n = static_cast<std::size_t>(count);
    auto check = [&](Binary operation, const std::function<float(float, float)>& exact) {
      std::vector<float> y(n + 1, 77.0f);
      operation(a.data(), b.data(), y.data(), count);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], exact(a[i], b[i])) << i << " of " << count;
      EXPECT_EQ(y[n], 77.0f) << "written past the end of " << count;
    };
    check(GetParam().add, [](float x, float y) { return x + y; });
    check(GetParam().subtract, [](float x, float y) { return x - y; });
    check(GetParam().multiply, [](float x, float y) { return x * y; });
    check(GetParam().divide, [](float x, float y) { return x / y; });
    check(GetParam().maximum, [](float x, float y) { return x > y ? x : y; });
    check(GetParam().minimum, [](float x, float y) { return x < y ? x : y; });
    check(GetParam().equal, [](float x, float y) { return x == y ? 1.0f : 0.0f; });
    std::vector<float> y(n + 1, 77.0f);
    GetParam().fma(a.data(), b.data(), c.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], a[i] * b[i] + c[i]);
    GetParam().fms(a.data(), b.data(), c.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], a[i] * b[i] - c[i]);
    GetParam().fnma(a.data(), b.data(), c.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], c[i] - a[i] * b[i]);
    GetParam().sqrt(a.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], std::sqrt(a[i]));
    GetParam().rsqrt(a.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], 1 / std::sqrt(a[i]));
    GetParam().negate(b.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], -b[i]);
    GetParam().step(b.data(), y.data(), count);
    for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y[i], b[i] > 0 ? 1.0f : 0.0f);
  }
}

TEST_P(Simd, StridedMemoryAndKeepTouchTheFirstLanesOnly) {
  const int lanes = GetParam().lanes;
  std::vector<float> x(static_cast<std::size_t>(3 * lanes));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) + 1;
  for (int n = 0; n <= lanes; ++n) {
    std::vector<float> kept(x.size()), gathered(x.size()), scattered(x.size(), -1.0f);
    GetParam().keep(x.data(), n, -infinity, kept.data());
    GetParam().strided(x.data(), 3, gathered.data(), n);
    GetParam().scatter(x.data(), scattered.data(), 3, n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(lanes); ++i) {
      const bool inside = static_cast<int>(i) < n;
      EXPECT_EQ(kept[i], inside ? x[i] : -infinity);
      EXPECT_EQ(gathered[i], inside ? x[3 * i] : 0.0f);
      EXPECT_EQ(scattered[3 * i], inside ? x[i] : -1.0f);
      EXPECT_EQ(scattered[3 * i + 1], -1.0f);
    }
  }
}

TEST_P(Simd, TransposedCopiesHoldEachNumberAndTouchNoOther) {
  const int lanes = GetParam().lanes, depth = 2 * lanes, from_row = depth + 3;
  for (int count = 1; count <= 2 * lanes + 1; ++count) {
    const int to_row = count + 2;
    std::vector<float> from(static_cast<std::size_t>(count * from_row)),
        to(static_cast<std::size_t>(depth * to_row), -1);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
    GetParam().transposed(from.data(), from_row, to.data(), to_row, depth, count);
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < to_row; ++i)
        EXPECT_EQ(to[static_cast<std::size_t>(k * to_row + i)], i < count ? static_cast<float>(i * from_row + k) : -1)
            << count << ": " << k << ", " << i;
  }
}

TEST_P(Simd, FillsOfARunTouchWhatTheyFillAndNoOther) {
  for (const std::int64_t apart : {1, 2, 5})
    for (std::int64_t count = 0; count <= 3 * GetParam().lanes + 1; ++count) {
      std::vector<float> y(static_cast<std::size_t>(apart * count + 2), -1);
      GetParam().filled(y.data() + 1, apart, count, 2.5f);
      for (std::int64_t i = 0; i < std::ssize(y); ++i)
        EXPECT_EQ(y[static_cast<std::size_t>(i)], i > 0 && i <= apart * count && (i - 1) % apart == 0 ? 2.5f : -1)
            << count << " of each " << apart << ": " << i;
    }
}

TEST_P(Simd, SumAndMaximumReduceByHalvingInAFixedOrder) {
  const auto lanes = static_cast<std::size_t>(GetParam().lanes);
  std::vector<float> x(lanes), iota(lanes);
  for (std::size_t i = 0; i < lanes; ++i)
    x[i] = std::ldexp(1.0f + 0.37f * static_cast<float>(i), static_cast<int>(i) % 5);
  std::vector<float> halves = x;
  for (std::size_t half = lanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) halves[i] += halves[i + half];
  EXPECT_EQ(GetParam().sum(x.data()), halves[0]);
  for (std::size_t largest = 0; largest < lanes; ++largest) {
    std::vector<float> y = x;
    y[largest] = 1000;
    EXPECT_EQ(GetParam().largest(y.data()), 1000);
  }
  GetParam().iota(iota.data());
  for (std::size_t i = 0; i < lanes; ++i) EXPECT_EQ(iota[i], static_cast<float>(i));
}

TEST_P(Simd, Bf16IsTheNearestOfItsNumbersAndOfTwoTheEvenOne) {
  std::vector<float> xs = floats(1.17549435e-38f, 3.38e38f, 65521);
  for (const float exact : {0.0f, 1.0f, 3.140625f, 2e-30f})
    for (const std::uint32_t below : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x18000u}) {
      std::uint32_t bits;
      std::memcpy(&bits, &exact, sizeof bits);
      if (exact > 0) xs.push_back(from_bits((bits & 0xffff0000u) + below));
    }
  xs.insert(xs.end(), {0.0f, -0.0f, infinity, -infinity, std::numeric_limits<float>::max()});
  std::vector<float> ys(xs.size());
  GetParam().round_bf16(xs.data(), ys.data(), static_cast<int>(xs.size()));
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &xs[i], sizeof bits);
    const float lower = from_bits(bits & 0xffff0000u), upper = from_bits((bits & 0xffff0000u) + 0x10000u);
    const double down = std::abs(double(xs[i]) - lower);
    const double up = std::abs((std::isinf(upper) ? std::copysign(0x1p128, xs[i]) : double(upper)) - xs[i]);
    const bool goes_down = std::isinf(xs[i]) || down < up || (down == up && (bits & 0x10000u) == 0);
    ASSERT_EQ(ys[i], goes_down ? lower : upper) << xs[i];
    ASSERT_EQ(std::signbit(ys[i]), std::signbit(xs[i]));
  }
}

TEST_P(Simd, Bf16OfWhatIsNotANumberIsNone) {
  // Also those whose mark is in the half that goes.
  const std::vector<float> xs{not_a_number, -not_a_number, from_bits(0x7f800001u), from_bits(0xff80ffffu),
                              from_bits(0x7fffffffu)};
  std::vector<float> ys(xs.size());
  GetParam().round_bf16(xs.data(), ys.data(), static_cast<int>(xs.size()));
  for (const float y : ys) EXPECT_TRUE(std::isnan(y));
}

TEST_P(Simd, Bf16InStridesAndInAllLanes) {
  const int lanes = GetParam().lanes;
  std::vector<float> x(static_cast<std::size_t>(lanes)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 2.5f;
  for (int n = 0; n <= lanes; ++n)
    for (const std::int64_t stride : {1, 2, lanes}) {
      GetParam().strided_bf16(x.data(), stride, y.data(), n);
      for (int i = 0; i < lanes; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(y[at], i < n ? x[at] : 0.0f);
      }
    }
  EXPECT_EQ(GetParam().broadcast_bf16(-1.5f), -1.5f * static_cast<float>(lanes));
}

TEST_P(Simd, FactorsOfDropoutAreThoseOfPhiloxAtTheirElements) {
  const std::int32_t random[4] = {12345, -7, 99, 0x7fffffff};
  std::vector<float> factors(static_cast<std::size_t>(GetParam().lanes));
  for (const std::int64_t threshold :
       {std::int64_t{0}, std::int64_t{1} << 30, std::int64_t{0xd0000000}, std::int64_t{1} << 32})
    for (const std::int64_t element :
         {std::int64_t{0}, std::int64_t{1000}, std::int64_t{1001}, std::int64_t{0xfffffff0}})
      for (const std::int64_t step : {1, 197}) {
        GetParam().factors(random, 3, element, step, threshold, 1.25f, factors.data());
        for (std::size_t i = 0; i < factors.size(); ++i) {
          const auto place = static_cast<std::uint32_t>(element + static_cast<std::int64_t>(i) * step);
          const std::uint32_t word =
              runtime::philox({place / 4, 3, 99, 0x7fffffff}, {12345, static_cast<std::uint32_t>(-7)})[place % 4];
          EXPECT_EQ(factors[i], static_cast<std::int64_t>(word) < threshold ? 0.0f : 1.25f) << place;
        }
      }
}

#if defined(__aarch64__)
const std::vector<SimdTable> tables{scalar_table(), neon_table()};
constexpr codegen::Family family = codegen::Family::aarch64;
#else
const std::vector<SimdTable> tables{scalar_table(), avx2_table(), avx512_table(), avx512_bf16_table()};
constexpr codegen::Family family = codegen::Family::x86_64;
#endif
INSTANTIATE_TEST_SUITE_P(Isa, Simd, testing::ValuesIn(tables),
                         [](const testing::TestParamInfo<SimdTable>& info) { return std::string(info.param.isa); });

TEST(SimdTables, AreThereForAllVectorsThatAnInstructionSetIsWrittenIn) {
  for (const codegen::Isa& isa : codegen::isas) {
    if (isa.family != family && isa.family != codegen::Family::portable) continue;
    EXPECT_TRUE(std::any_of(tables.begin(), tables.end(), [&](const SimdTable& t) { return t.isa == isa.vectors; }))
        << "tests/kernels has no table of " << isa.vectors;
  }
}

}  // namespace
}  // namespace tessera::test
