// Principal components against rows whose components are known, and the colours that patches get.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "runtime/clusters.hpp"
#include "runtime/patch_components.hpp"
#include "runtime/principal_components.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(Components, OfAnEllipseAreItsAxes) {
  // Points (10, -4) + 3 cos(t) u + sin(t) v for whole turns: variances 9 / 2 and 1 / 2, but for n / (n - 1).
  constexpr int n = 64;
  const std::vector<double> u{0.8, 0.6}, v{-0.6, 0.8};
  std::vector<float> rows;
  for (int i = 0; i < n; ++i) {
    const double t = 2 * M_PI * i / n;
    for (std::size_t d = 0; d < 2; ++d)
      rows.push_back(static_cast<float>((d ? -4 : 10) + 3 * std::cos(t) * u[d] + std::sin(t) * v[d]));
  }
  const PrincipalComponents found = principal_components(rows, 2, 3);
  ASSERT_EQ(found.directions.size(), 2u);  // no more are spanned
  EXPECT_NEAR(found.mean[0], 10, 1e-5);
  EXPECT_NEAR(found.mean[1], -4, 1e-5);
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_NEAR(found.directions[0][d], u[d], 1e-6);
    EXPECT_NEAR(found.directions[1][d], v[d], 1e-6);
  }
  EXPECT_NEAR(found.variances[0], 4.5 * n / (n - 1), 1e-5);
  EXPECT_NEAR(found.variances[1], 0.5 * n / (n - 1), 1e-5);
  EXPECT_NEAR(found.along(0, std::span(rows).first(2)), 3, 1e-5);
}

TEST(Components, AreEigenvectorsOfTheCovarianceMatrix) {
  constexpr std::size_t width = 40, count = 90;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> rows(width * count);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = normal(random) * (1 + static_cast<float>(i % width) / 8);
  const PrincipalComponents found = principal_components(rows, width, 3);
  ASSERT_EQ(found.directions.size(), 3u);
  double trace = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<double> image(width, 0);  // the covariance matrix times the direction
    for (std::size_t r = 0; r < count; ++r) {
      const std::span<const float> row = std::span<const float>(rows).subspan(r * width, width);
      const double along = found.along(k, row);
      for (std::size_t i = 0; i < width; ++i) image[i] += along * (row[i] - found.mean[i]) / (count - 1);
    }
    for (std::size_t i = 0; i < width; ++i)
      EXPECT_NEAR(image[i], found.variances[k] * found.directions[k][i], 1e-6 * found.variances[0]) << k;
    for (std::size_t other = 0; other < 3; ++other)
      EXPECT_NEAR(dot(found.directions[k], found.directions[other]), k == other ? 1 : 0, 1e-9);
    if (k > 0) {
      EXPECT_LE(found.variances[k], found.variances[k - 1]);
    }
  }
  for (std::size_t i = 0; i < width; ++i)
    for (std::size_t r = 0; r < count; ++r) trace += std::pow(rows[r * width + i] - found.mean[i], 2) / (count - 1);
  // No direction has more variance than the first: each column is one.
  EXPECT_GT(found.variances[0], trace / width);
}

TEST(Components, OfRowsThatAreAllAlikeAreNone) {
  EXPECT_TRUE(principal_components(std::vector<float>(30, 2.5f), 5, 3).directions.empty());
}

/// A picture of 6 x 6 patches, 4 numbers each, behind a class token: an object of two parts in the middle of nothing.
std::vector<float> tokens_of_an_object() {
  std::vector<float> tokens(4, 100);  // the class token, which is not looked at
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x) {
      const bool object = y > 1 && y < 5 && x > 1 && x < 5;
      const float part = object ? (y > 3 ? 1.0f : -1.0f) : 0.0f,
                  noise = 0.01f * static_cast<float>((3 * x + 5 * y) % 7);
      tokens.insert(tokens.end(), {object ? 9.0f : 1.0f, part, noise, 3});
    }
  return tokens;
}

TEST(Components, BackgroundIsBlackAndPartsDifferInColour) {
  const std::vector<PatchColours> colours = patch_colours({tokens_of_an_object()}, 4, {6, 6});
  ASSERT_EQ(colours.size(), 1u);
  const auto red = [&](int y, int x) { return colours[0].colours[static_cast<std::size_t>(3 * (6 * y + x))]; };
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x) {
      if (y > 1 && y < 5 && x > 1 && x < 5) {
        EXPECT_EQ(red(y, x) > 127, red(4, 2) > 127 ? y > 3 : y <= 3) << y << ", " << x;
      } else {
        for (std::size_t c = 0; c < 3; ++c)
          EXPECT_EQ(colours[0].colours[static_cast<std::size_t>(3 * (6 * y + x)) + c], 0) << y << ", " << x;
      }
    }
}

TEST(Clusters, AreTheHeapsThatRowsWereDrawnFromTheLargestFirst) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const std::vector<std::array<float, 2>> centres{{0, 0}, {20, 0}, {0, 20}, {-20, -20}};
  std::vector<float> rows;
  std::vector<std::int32_t> heap;
  for (std::size_t i = 0; i < 100; ++i) {
    const std::size_t shuffled = 37 * i % 100;
    const std::size_t h = shuffled < 40 ? 0 : shuffled < 70 ? 1 : shuffled < 90 ? 2 : 3;
    heap.push_back(static_cast<std::int32_t>(h));
    for (const float at : centres[h]) rows.push_back(at + normal(random));
  }
  EXPECT_EQ(k_means(rows, 2, 4), heap);
}

TEST(Clusters, AreNoMoreThanRowsDiffer) {
  const std::vector<float> rows{1, 1, 5, 1, 5, 1};
  EXPECT_EQ(k_means(rows, 1, 5), (std::vector<std::int32_t>{0, 0, 1, 0, 1, 0}));
  EXPECT_EQ(k_means(std::vector<float>(6, 2.5f), 2, 3), (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_TRUE(k_means({}, 2, 3).empty());
}

TEST(Clusters, OfPatchesAreBackgroundAndTheTwoPartsOfAnObject) {
  const std::vector<PatchColours> colours = cluster_colours({tokens_of_an_object()}, 4, {6, 6}, 3);
  const auto colour = [&](int y, int x) {
    const auto at = colours.at(0).colours.begin() + 3 * (6 * y + x);
    return std::vector<std::uint8_t>(at, at + 3);
  };
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 6; ++x) {
      const bool object = y > 1 && y < 5 && x > 1 && x < 5;
      EXPECT_EQ(colour(y, x), !object ? colour(0, 0) : y > 3 ? colour(4, 2) : colour(2, 2)) << y << ", " << x;
    }
  EXPECT_NE(colour(0, 0), colour(2, 2));
  EXPECT_NE(colour(4, 2), colour(2, 2));
}

TEST(Components, RefusesWhatIsNoNumberOrAllAlike) {
  std::vector<float> tokens = tokens_of_an_object();
  tokens.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sentence([&] { patch_colours({tokens}, 4, {6, 6}); }),
            "the features of patches are not all finite numbers");
  EXPECT_EQ(sentence([&] { cluster_colours({tokens}, 4, {6, 6}, 3); }),
            "the features of patches are not all finite numbers");
  EXPECT_EQ(sentence([&] { patch_colours({std::vector<float>(36 * 4, 1)}, 4, {6, 6}); }),
            "the features of all patches are alike: there is nothing to tell apart");
}

}  // namespace
}  // namespace tessera::runtime
