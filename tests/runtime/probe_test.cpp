// The linear probe against what is known of its minimum.
#include "runtime/probe.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {
namespace {

/// Clouds around a centre for each class, closer together than they are wide.
Labelled clouds(int classes, int width, int count, double apart, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> centres(static_cast<std::size_t>(classes * width));
  for (double& number : centres) number = apart * normal(random);
  Labelled data{width, {}, {}};
  for (int i = 0; i < count; ++i) {
    const int label = i % classes;
    for (int d = 0; d < width; ++d)
      data.rows.push_back(
          static_cast<float>(3 + 2 * (centres[static_cast<std::size_t>(label * width + d)] + normal(random))));
    data.labels.push_back(label);
  }
  return data;
}

std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back(std::string(1, static_cast<char>('a' + i)));
  return all;
}

/// The objective of fit_head, of a head for numbers as they come, written anew from its definition.
double objective(const LinearHead& head, const Labelled& data, double l2) {
  const auto width = static_cast<std::size_t>(data.width);
  double loss = score(head, data).loss;
  for (std::size_t i = 0; i < width; ++i) {
    double mean = 0, square = 0;
    for (std::size_t r = 0; r < data.labels.size(); ++r) mean += data.rows[r * width + i];
    mean /= static_cast<double>(data.size());
    for (std::size_t r = 0; r < data.labels.size(); ++r) square += std::pow(data.rows[r * width + i] - mean, 2);
    for (std::size_t c = 0; c < head.classes.size(); ++c)
      loss += 0.5 * l2 * square / static_cast<double>(data.size()) * std::pow(head.weight[c * width + i], 2);
  }
  return loss;
}

TEST(Probe, NoStepFromTheFittedHeadMakesTheObjectiveSmaller) {
  const Labelled data = clouds(3, 4, 90, 0.7, 1);
  for (const double l2 : {1.0, 1e-2}) {
    const LinearHead head = fit_head(data, names(3), l2);
    const double least = objective(head, data, l2);
    for (std::size_t i = 0; i < head.weight.size() + head.bias.size(); ++i) {
      // Central differences: the slope is zero, and the objective curves upwards.
      constexpr double h = 1e-3;
      double sides[2];
      for (const int side : {0, 1}) {
        LinearHead moved = head;
        (i < head.weight.size() ? moved.weight[i] : moved.bias[i - head.weight.size()]) += side ? h : -h;
        sides[side] = objective(moved, data, l2);
      }
      EXPECT_NEAR((sides[1] - sides[0]) / (2 * h), 0, 2e-4) << i << ", l2 " << l2;  // probabilities are floats
      EXPECT_GE(sides[0] + sides[1], 2 * least - 1e-7) << i;
    }
  }
}

TEST(Probe, OfNumbersThatTellNothingItSaysHowOftenClassesAre) {
  Labelled data{2, std::vector<float>(2 * 10, 7), {0, 0, 0, 0, 0, 1, 1, 1, 2, 2}};
  const LinearHead head = fit_head(data, names(3), 1e-3);
  const std::vector<float> sure = head.probabilities(std::vector<float>{7, 7});
  EXPECT_NEAR(sure[0], 0.5, 1e-5);
  EXPECT_NEAR(sure[1], 0.3, 1e-5);
  EXPECT_NEAR(sure[2], 0.2, 1e-5);
}

TEST(Probe, OfTwoPointsHasTheWeightOfItsClosedForm) {
  // Rows -1 and 1, a class each: by symmetry logits are -+w x, and w solves l2 w = 1 / (1 + exp(2 w)).
  Labelled data{1, {-1, 1}, {0, 1}};
  constexpr double l2 = 0.1;
  double low = 0, high = 20;
  for (int i = 0; i < 100; ++i) {
    const double w = (low + high) / 2;
    (l2 * w < 1 / (1 + std::exp(2 * w)) ? low : high) = w;
  }
  const LinearHead head = fit_head(data, names(2), l2);
  EXPECT_NEAR(head.weight[1], low, 1e-5);
  EXPECT_NEAR(head.weight[0], -low, 1e-5);
  EXPECT_NEAR(head.bias[0], head.bias[1], 1e-6);
}

TEST(Probe, StartsAnywhereAndEndsInTheSameHead) {
  const Labelled data = clouds(4, 6, 120, 1, 2);
  const LinearHead from_zero = fit_head(data, names(4), 1e-2);
  LinearHead start = from_zero;
  for (double& number : start.weight) number = -3 * number + 1;
  const LinearHead from_there = fit_head(data, names(4), 1e-2, &start);
  for (std::size_t i = 0; i < from_zero.weight.size(); ++i)
    EXPECT_NEAR(from_there.weight[i], from_zero.weight[i], 2e-3) << i;
  EXPECT_EQ(fit_head(data, names(4), 1e-2).weight, from_zero.weight);  // to the bit
}

TEST(Probe, ChoosesL2OnWhatItHoldsOut) {
  const Labelled data = clouds(3, 30, 150, 0.35, 3);
  const Probe fitted = probe(data, names(3));
  EXPECT_EQ(fitted.held_out, 30);
  EXPECT_EQ(fitted.fitted, 120);
  ASSERT_EQ(fitted.trials.size(), 6u);
  for (const Trial& trial : fitted.trials) {
    const auto chosen =
        std::find_if(fitted.trials.begin(), fitted.trials.end(), [&](const Trial& t) { return t.l2 == fitted.l2; });
    ASSERT_NE(chosen, fitted.trials.end());
    EXPECT_GE(chosen->held_out.right, trial.held_out.right);
  }
  const Labelled others = clouds(3, 30, 300, 0.35, 3);
  EXPECT_GT(score(fitted.head, others).accuracy(), 0.6);  // a third by guessing
}

TEST(Probe, RefusesWhatCannotBeToldApart) {
  EXPECT_EQ(sentence([] { probe({1, {1, 2}, {0, 0}}, {"cats"}); }),
            "all pictures are of one class, 'cats': there is nothing to tell apart");
  EXPECT_EQ(sentence([] { probe({1, {1, 2, 3}, {0, 0, 1}}, {"cats", "dogs"}); }),
            "the class 'dogs' has 1 picture: a probe needs two of each");
}

}  // namespace
}  // namespace tessera::runtime
