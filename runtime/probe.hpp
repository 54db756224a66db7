// A linear probe: a head for classes of one's own, fitted to features.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/features.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Rows of numbers and the class of each.
struct Labelled {
  std::int64_t width = 0;
  std::vector<float> rows;           ///< [size, width]
  std::vector<std::int32_t> labels;  ///< below the number of classes
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// logits = weight row + bias: weight [classes, width].
struct LinearHead {
  std::vector<std::string> classes;
  std::int64_t width = 0;
  std::vector<double> weight, bias;

  /// The softmax of the logits of one row.
  std::vector<float> probabilities(std::span<const float> row) const;
};

/// Multinomial logistic regression: the head that makes
///   mean of -log p(label) over the rows + l2 / 2 * sum of squares of the weights on standardised numbers
/// smallest, the biases being free. Numbers are standardised for it (mean 0 and deviation 1 over the rows), and the
/// head is told for numbers as they come. The objective is convex; L-BFGS (Nocedal, Wright 2006, algorithm 7.5) goes on
/// until its gradient is below 1e-6 everywhere, or for 1,000 steps. Sums are in one order for any number of threads.
/// `start`, unless it is null, is a head of the same classes to begin from.
LinearHead fit_head(const Labelled& data, const std::vector<std::string>& classes, double l2,
                    const LinearHead* start = nullptr);

/// How well a head answers.
struct HeadScore {
  std::int64_t right = 0, size = 0;
  double loss = 0;  ///< mean of -log p(label)
  double accuracy() const { return static_cast<double>(right) / static_cast<double>(size); }
};
HeadScore score(const LinearHead& head, const Labelled& data);

/// One value of L2 that was tried.
struct Trial {
  double l2;
  HeadScore held_out;
};
struct Probe {
  LinearHead head;  ///< fitted to all rows with `l2`
  double l2 = 0;    ///< of the best accuracy on the rows that were held out, of equal ones that of the smaller loss
  std::vector<Trial> trials;
  std::int64_t fitted = 0, held_out = 0;
};
/// Chooses L2 from 1 to 1e-5 by a part of the rows that the others are fitted without: the last of each five of a class
/// in their order. Throws an Error for fewer than two classes and for a class of one row.
Probe probe(const Labelled& data, const std::vector<std::string>& classes);

/// The features with the classes that the folders of their pictures name; `classes`, where it is empty, becomes their
/// sorted names. Throws an Error for a class that is not among them.
Labelled labelled(const Features& features, std::vector<std::string>& classes);

/// Writes "head.weight" F32 [classes, width] and "head.bias" F32 [classes], the names in the metadata; all or nothing.
void write_head(const std::filesystem::path& path, const LinearHead& head, const Model& model, const Origin& origin,
                const Preprocessing& input);
/// Throws an Error for a file that holds no probe, and for one of another origin.
LinearHead read_head(const std::filesystem::path& path, const Model& model, const Origin& origin);

}  // namespace tessera::runtime
