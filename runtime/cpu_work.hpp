// A forward pass and a training step on the CPU, to be timed: parameters are the starting ones, images are noise.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Images of noise, the same ones each time.
Arena noise(const Model& model, std::int64_t images);
/// The parameters as they start.
Arena starting_parameters(const Model& model);

class ForwardWork {
 public:
  ForwardWork(const Model& model, std::int64_t batch);
  void operator()();

 private:
  const Model& model_;
  std::int64_t batch_;
  Arena parameters_, packed_, images_, outputs_, scratch_;
};

/// Labels go round, and so do the one-hot targets of a recipe that softens labels.
class Labels {
 public:
  Labels(const Model& model, std::int64_t batch);
  const std::int32_t* numbers() const { return numbers_.data(); }
  const float* targets() const { return targets_.floats(); }

 private:
  std::vector<std::int32_t> numbers_;
  Arena targets_;
};

class TrainingWork {
 public:
  TrainingWork(const Model& model, std::int64_t batch);
  void operator()();

 private:
  const Model& model_;
  std::int64_t batch_;
  Labels labels_;
  Arena parameters_, packed_, gradients_, optimizer_, images_, outputs_, scratch_;
};

}  // namespace tessera::runtime
