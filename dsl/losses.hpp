// Losses: what a half of a training step makes small, and what it reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dsl/tensor.hpp"

namespace tessera {

/// What a half of a training step gives beside its outputs (Model::losses): the number that it makes small, and the
/// numbers that are reported, each with its name.
struct Losses {
  Tensor<> minimised;
  std::vector<std::pair<std::string, Tensor<>>> reported;
};

}  // namespace tessera
