// How a checkpoint's model wants its pictures.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "declare/declare.hpp"
#include "runtime/model.hpp"

namespace tessera::declare {

constexpr std::array<double, 3> half{0.5, 0.5, 0.5};
constexpr std::array<double, 3> imagenet_mean{0.485, 0.456, 0.406}, imagenet_deviation{0.229, 0.224, 0.225};

/// How pictures are prepared.
struct Input {
  std::array<double, 3> mean, deviation;
  double crop;
  bool bilinear = false;
  runtime::Fit fit = runtime::Fit::cut;

  friend bool operator==(const Input&, const Input&) = default;
};

/// As the configuration says; what it does not say is as is usual for the checkpoint's library, and one assumption
/// more.
Input input_of(const Checkpoint& checkpoint, const Config& config, std::vector<std::string>& assumptions);

/// One number where all three channels have the same.
std::string channels(const std::array<double, 3>& of);

/// The shortest decimal that C++ reads as the same number.
std::string number(double x);

}  // namespace tessera::declare
