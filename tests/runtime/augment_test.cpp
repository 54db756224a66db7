// What training images and labels go through by chance.
#include "runtime/augment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "runtime/mixing.hpp"

namespace tessera::runtime {
namespace {

/// Two channels of 5 x 4 pixels, all different and none black.
Bytes picture() {
  Bytes pixels(40);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

Bytes augment(const Augmentation& how, std::uint64_t draw) {
  Random random(1, augmenting, draw);
  return augmented(picture(), 2, 5, 4, how, random);
}

/// As a key: GCC 12 warns of comparing vectors of bytes by order.
std::string key(const Bytes& pixels) { return {pixels.begin(), pixels.end()}; }

/// The picture moved by whole pixels, black coming in.
Bytes moved(std::int64_t down, std::int64_t right) {
  const Bytes from = picture();
  Bytes to(from.size(), 0);
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t y = std::max<std::int64_t>(0, down); y < std::min<std::int64_t>(5, 5 + down); ++y)
      for (std::int64_t x = std::max<std::int64_t>(0, right); x < std::min<std::int64_t>(4, 4 + right); ++x)
        to[static_cast<std::size_t>((c * 5 + y) * 4 + x)] =
            from[static_cast<std::size_t>((c * 5 + y - down) * 4 + x - right)];
  return to;
}

TEST(Augmented, CropsAreAllPlacesOfAPaddedPictureAndNoOthers) {
  std::set<std::string> places, seen;
  for (std::int64_t down = -1; down <= 1; ++down)
    for (std::int64_t right = -1; right <= 1; ++right) places.insert(key(moved(down, right)));
  for (std::uint64_t draw = 0; draw < 200; ++draw) seen.insert(key(augment({.crop = 1}, draw)));
  EXPECT_EQ(seen, places);
}

TEST(Augmented, FlipsHalfOfThePictures) {
  Bytes mirrored = picture();
  for (auto row = mirrored.begin(); row != mirrored.end(); row += 4) std::reverse(row, row + 4);
  int flipped = 0;
  for (std::uint64_t draw = 0; draw < 400; ++draw) {
    const Bytes found = augment({.flip = true}, draw);
    EXPECT_TRUE(found == picture() || found == mirrored);
    flipped += found == mirrored;
  }
  EXPECT_NEAR(flipped, 200, 50);  // five deviations
}

TEST(Augmented, ErasesABoxOfAtMostAThirdInAllChannelsAlike) {
  int erased = 0;
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    const Bytes found = augment({.erase = 0.5}, draw), before = picture();
    std::set<std::int64_t> rows, columns;
    for (std::int64_t i = 0; i < 40; ++i)
      if (found[static_cast<std::size_t>(i)] != before[static_cast<std::size_t>(i)]) {
        rows.insert(i / 4 % 5);
        columns.insert(i % 4);
      }
    if (rows.empty()) continue;
    ++erased;
    // The sides are rounded, so that the box of a small picture can be a little larger than a third.
    EXPECT_LE((*rows.rbegin() - *rows.begin() + 1) * (*columns.rbegin() - *columns.begin() + 1), 10);
  }
  EXPECT_NEAR(erased, 50, 25);
}

TEST(Augmented, OperationsAreAFunctionOfTheDrawAndDifferFromDrawToDraw) {
  std::set<std::string> seen;
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    const Augmentation two{.operations = 2, .magnitude = 20};
    const Bytes once = augment(two, draw);
    EXPECT_EQ(once.size(), picture().size());
    EXPECT_EQ(once, augment(two, draw));
    seen.insert(key(once));
  }
  EXPECT_GT(seen.size(), 20u);
}

TEST(Augmented, IsThePictureItselfWhereNothingIsAskedFor) { EXPECT_EQ(augment({}, 1), picture()); }

TEST(Beta, HasTheMeanAndTheVarianceOfTheDistribution) {
  for (const double alpha : {0.2, 1.0, 2.5}) {
    Random random(3, mixing, 0);
    double sum = 0, squares = 0;
    constexpr int draws = 20000;
    for (int i = 0; i < draws; ++i) {
      const double x = beta(alpha, random);
      ASSERT_TRUE(x >= 0 && x <= 1) << x;
      sum += x;
      squares += x * x;
    }
    const double mean = sum / draws, variance = squares / draws - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.015) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.005) << alpha;
  }
}

/// A batch of three grey pictures of 6 x 6 pixels with the values 1, 2 and 4, of the classes 0, 1 and 2 of 4.
struct Mixed {
  explicit Mixed(const Recipe& recipe, std::uint64_t draw) {
    for (std::size_t i = 0; i < 3; ++i) std::fill_n(images.begin() + static_cast<std::ptrdiff_t>(36 * i), 36, value[i]);
    Random random(5, mixing, draw);
    mix(recipe, 3, 1, 6, 6, 4, labels, images.data(), targets.data(), random);
  }
  static constexpr float value[]{1, 2, 4};
  static constexpr std::int32_t labels[]{0, 1, 2};
  std::vector<float> images = std::vector<float>(108), targets = std::vector<float>(12);
};

TEST(Mix, SmoothsLabels) {
  const Mixed mixed({.smoothing = 0.2}, 0);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_FLOAT_EQ(mixed.targets[i], i % 5 == 0 ? 0.85f : 0.05f) << i;
}

TEST(Mix, BlendsImagesByTheShareThatTheirTargetsSay) {
  std::set<float> shares;
  for (std::uint64_t draw = 0; draw < 20; ++draw) {
    const Mixed mixed({.mixup = 0.8}, draw);
    const float share = mixed.targets[0];
    shares.insert(share);
    EXPECT_NEAR(mixed.targets[2], 1 - share, 1e-6);
    EXPECT_NEAR(mixed.images[0], share * 1 + (1 - share) * 4, 1e-5);
    EXPECT_NEAR(mixed.images[72], share * 4 + (1 - share) * 1, 1e-5);
    EXPECT_EQ(mixed.images[36], 2);  // the picture in the middle meets itself
    EXPECT_EQ(mixed.targets[5], 1);
  }
  EXPECT_GT(shares.size(), 15u);
}

TEST(Mix, PastesABoxWhoseShareTheTargetsSay) {
  for (std::uint64_t draw = 0; draw < 50; ++draw) {
    const Mixed mixed({.cutmix = 1}, draw);
    const auto own = std::count(mixed.images.begin(), mixed.images.begin() + 36, 1.0f);
    const auto pasted = std::count(mixed.images.begin(), mixed.images.begin() + 36, 4.0f);
    EXPECT_EQ(own + pasted, 36);
    EXPECT_NEAR(mixed.targets[0], static_cast<double>(own) / 36, 1e-6);
    EXPECT_NEAR(mixed.targets[2], static_cast<double>(pasted) / 36, 1e-6);
  }
}

}  // namespace
}  // namespace tessera::runtime
