// A model's answers on a data set.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/dataset.hpp"
#include "runtime/inference.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// The index of the largest number; the first of equal ones.
std::int32_t largest(std::span<const float> row);

/// Whether fewer than `k` of the other numbers come before that of `label`: are larger, or equal and further in front.
bool among_largest(std::span<const float> row, std::int32_t label, std::int64_t k);

struct Evaluation {
  double loss = 0;  ///< mean over the images; 0 where the model has none
  std::int64_t correct = 0;
  std::int64_t among_five = 0;          ///< images whose class is among the five likeliest
  std::vector<std::int32_t> predicted;  ///< the answer for each image
  std::vector<float> confidence;        ///< the probability of that answer

  double accuracy() const {
    return predicted.empty() ? 0 : static_cast<double>(correct) / static_cast<double>(predicted.size());
  }
  /// How sure the model was; below or above the accuracy where its probabilities are none.
  double mean_confidence() const {
    double sum = 0;
    for (const float sure : confidence) sum += sure;
    return confidence.empty() ? 0 : sum / static_cast<double>(confidence.size());
  }
  double accuracy_of_five() const {
    return predicted.empty() ? 0 : static_cast<double>(among_five) / static_cast<double>(predicted.size());
  }
};

/// Runs the model over the whole set, `batch` images at a time, which ranks partition: what comes of it is the same for
/// any number of them, and on all. Throws an Error when the images do not fit the model.
Evaluation evaluate(const Model& model, const Recipe& recipe, const Inference& inference, const Dataset& data,
                    std::int64_t batch, const Communicator& ranks = Communicator::single());

/// Throws an Error unless the model can read these images and has an output for each of their classes.
void check_fit(const Model& model, const Dataset& data);

}  // namespace tessera::runtime
