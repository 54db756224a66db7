// The algebra of dims on random expressions, and how normal forms print.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "dsl/division.hpp"

namespace {

using namespace tessera;

std::string printed(const Polynomial& p) {
  Text t;
  p.print(t);
  return std::string(t.view());
}
std::string printed(const Dim& d) { return printed(d.normal); }

/// Random expressions of a few axes with random sizes, of a batch without one, and of numbers; each with its value by
/// plain arithmetic.
class RandomDims {
 public:
  struct Valued {
    Dim dim;
    std::int64_t value = 0;
  };

  /// Draws new sizes for the axes, and for the batch.
  void draw_sizes() {
    for (std::int64_t& size : size_) size = 1 + below(9);
    batch_ = 1 + below(9);
  }
  std::int64_t batch() const { return batch_; }

  /// An axis, the batch or a number from -3 to 3.
  Valued leaf() {
    static constexpr std::array<const char*, 4> names = {"P", "Q", "R", "S"};
    const std::int64_t pick = below(6);
    if (pick == 5) {
      const std::int64_t value = below(7) - 3;
      return {Dim::constant(value), value};
    }
    if (pick == 4) return {Dim::axis("B"), batch_};
    const auto i = static_cast<std::size_t>(pick);
    return {Dim::axis(names[i], size_[i]), size_[i]};
  }
  /// Up to three leaves, added and multiplied.
  Valued expression() {
    Valued e = leaf();
    for (std::int64_t more = below(3); more > 0; --more) {
      const Valued other = leaf();
      e = below(2) ? Valued{e.dim + other.dim, e.value + other.value}
                   : Valued{e.dim * other.dim, e.value * other.value};
    }
    return e;
  }
  /// A product of up to three leaves, none of them zero.
  Valued product() {
    Valued p{Dim::constant(1), 1};
    for (std::int64_t more = 1 + below(3); more > 0;) {
      const Valued factor = leaf();
      if (factor.value == 0) continue;
      p = {p.dim * factor.dim, p.value * factor.value};
      --more;
    }
    return p;
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(n)); }
  std::mt19937_64 generator_{20240607};
  std::array<std::int64_t, 4> size_{};
  std::int64_t batch_ = 1;
};

/// Calls `check` on random dims until it has judged `wanted` of them; it answers false for what does not fit a dim.
template <class Check>
void for_random_dims(const Check& check) {
  constexpr int wanted = 2000;
  RandomDims random;
  int judged = 0;
  for (int drawn = 0; judged < wanted && !testing::Test::HasFatalFailure(); ++drawn) {
    ASSERT_LT(drawn, 10 * wanted) << "most of what is drawn does not fit a dim";
    random.draw_sizes();
    judged += check(random) ? 1 : 0;
  }
}

template <class... Ds>
bool fit(const Ds&... dims) {
  return (... && !dims.normal.overflow);
}

TEST(DimProperties, AdditionIsAssociative) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim, c = random.expression().dim;
    const Dim left = (a + b) + c, right = a + (b + c);
    if (!fit(left, right)) return false;
    EXPECT_EQ(left, right) << printed(left) << " and " << printed(right);
    return true;
  });
}

TEST(DimProperties, AdditionIsCommutative) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim;
    const Dim left = a + b, right = b + a;
    if (!fit(left, right)) return false;
    EXPECT_EQ(left, right) << printed(left) << " and " << printed(right);
    return true;
  });
}

TEST(DimProperties, MultiplicationIsAssociative) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim, c = random.leaf().dim;
    const Dim left = (a * b) * c, right = a * (b * c);
    if (!fit(left, right)) return false;
    EXPECT_EQ(left, right) << printed(left) << " and " << printed(right);
    return true;
  });
}

TEST(DimProperties, MultiplicationIsCommutative) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim;
    const Dim left = a * b, right = b * a;
    if (!fit(left, right)) return false;
    EXPECT_EQ(left, right) << printed(left) << " and " << printed(right);
    return true;
  });
}

TEST(DimProperties, MultiplicationDistributesOverAdditionAndSubtraction) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim, c = random.expression().dim;
    const Dim sum = a * (b + c), sums = a * b + a * c, difference = a * (b - c), differences = a * b - a * c;
    if (!fit(sum, sums, difference, differences)) return false;
    EXPECT_EQ(sum, sums) << printed(a) << ", " << printed(b) << ", " << printed(c);
    EXPECT_EQ(difference, differences) << printed(a) << ", " << printed(b) << ", " << printed(c);
    return true;
  });
}

TEST(DimProperties, ZeroAndOneAreNeutral) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, zero = Dim::constant(0), one = Dim::constant(1);
    EXPECT_EQ(a + zero, a);
    EXPECT_EQ(a * one, a);
    EXPECT_EQ(a * zero, zero);
    return true;
  });
}

TEST(DimProperties, SubtractionUndoesAddition) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim;
    if (!fit(a + b)) return false;
    EXPECT_EQ((a + b) - b, a) << printed(a) << ", " << printed(b);
    EXPECT_EQ(a - a, Dim::constant(0));
    return true;
  });
}

TEST(DimProperties, ValuesAreThoseOfPlainArithmetic) {
  for_random_dims([](RandomDims& random) {
    const auto a = random.expression(), b = random.expression();
    const Dim product = a.dim * b.dim;
    if (!fit(product, a.dim + b.dim)) return false;
    EXPECT_EQ((a.dim + b.dim).value(random.batch()), a.value + b.value);
    EXPECT_EQ((a.dim - b.dim).value(random.batch()), a.value - b.value);
    EXPECT_EQ(product.value(random.batch()), a.value * b.value);
    return true;
  });
}

TEST(DimProperties, DimsThatDifferInValueDifferInForm) {
  for_random_dims([](RandomDims& random) {
    const auto a = random.expression(), b = random.expression();
    if (a.value == b.value) return false;
    EXPECT_FALSE(a.dim == b.dim) << printed(a.dim) << " and " << printed(b.dim);
    return true;
  });
}

TEST(DimProperties, DivisionByAProductUndoesMultiplication) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.product().dim;
    if (!fit(a * b)) return false;
    const Division division = divide(a * b, b);
    EXPECT_EQ(division.result, Division::Result::exact) << printed(a) << ", " << printed(b);
    EXPECT_EQ(division.quotient, a) << printed(a) << ", " << printed(b);
    return true;
  });
}

TEST(DimProperties, DivisionByASumUndoesMultiplication) {
  for_random_dims([](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.product().dim + random.product().dim;
    if (b.normal.terms != 2 || !fit(a * b)) return false;
    const Division division = divide(a * b, b);
    EXPECT_EQ(division.result, Division::Result::exact) << printed(a) << ", " << printed(b);
    EXPECT_EQ(division.quotient, a) << printed(a) << ", " << printed(b);
    return true;
  });
}

TEST(DimProperties, AnExactQuotientTimesTheDivisorIsTheDividend) {
  int exact = 0;
  for_random_dims([&](RandomDims& random) {
    const Dim a = random.expression().dim, b = random.expression().dim;
    const Division division = divide(a, b);
    if (division.result != Division::Result::exact) return true;
    // A number is divided as a number, by the value that the divisor's axes have.
    if (a.normal.is_constant() && !b.normal.is_constant())
      EXPECT_EQ(division.quotient.value() * b.value(), a.value()) << printed(a) << ", " << printed(b);
    else
      EXPECT_EQ(division.quotient * b, a) << printed(a) << ", " << printed(b);
    ++exact;
    return true;
  });
  EXPECT_GT(exact, 100);
}

TEST(NormalFormGolden, PrintsHigherDegreesFirstThenByName) {
  const Dim B = Dim::axis("B"), N = Dim::axis("N", 196), H = Dim::axis("H", 3), K = Dim::axis("K", 64);
  const Dim one = Dim::constant(1), two = Dim::constant(2), three = Dim::constant(3);
  const Dim D = Dim::defined("D", H * K), M = Dim::defined("M", Dim::constant(4) * D);
  const std::pair<Dim, const char*> golden[] = {
      {one + N, "N+1"},
      {K * H, "H*K"},
      {D, "H*K"},
      {D * three, "3*H*K"},
      {M - D, "3*H*K"},
      {D - M, "-3*H*K"},
      {N - one, "N-1"},
      {one - N, "-N+1"},
      {N - N, "0"},
      {two + three, "5"},
      {N + N * N + one, "N*N+N+1"},
      {(N + one) * (N + one), "N*N+2*N+1"},
      {(N + one) * (N - one), "N*N-1"},
      {(K + H) * (K - H), "-H*H+K*K"},
      {(N + one) * D * B, "B*H*K*N+B*H*K"},
      {B * (N + one) - B, "B*N"},
      {two * N * two * H, "4*H*N"},
      {(B + N + one) * two, "2*B+2*N+2"},
      {(H + K + N) * (H + K + N), "H*H+2*H*K+2*H*N+K*K+2*K*N+N*N"},
  };
  for (const auto& [dim, text] : golden) EXPECT_EQ(printed(dim), text);
}

TEST(NormalFormGolden, TellsAxesOfOneNameAndTwoSizesApart) {
  EXPECT_EQ(printed(Dim::axis("N", 4) + Dim::axis("N", 9)), "N+N");
  EXPECT_FALSE(Dim::axis("N", 4) == Dim::axis("N", 9));
}

TEST(NormalFormGolden, SaysThatAnExpressionIsTooLong) {
  Dim seven = Dim::constant(1);
  for (int i = 0; i < 7; ++i) seven = seven * Dim::axis("P", 2);
  EXPECT_EQ(printed(seven), "too-long-dim");
}

}  // namespace
