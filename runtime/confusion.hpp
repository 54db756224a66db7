// Which classes are taken for which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dataset.hpp"
#include "runtime/evaluate.hpp"

namespace tessera::runtime {

/// How many images of each class got each answer.
struct Confusion {
  std::int64_t classes = 0;
  std::vector<std::int64_t> counts;  ///< [true class, answer]
  std::vector<std::string> names;    ///< what the picture calls the classes

  std::int64_t at(std::int64_t label, std::int64_t answer) const {
    return counts[static_cast<std::size_t>(label * classes + answer)];
  }
};

/// Of as many classes as the labels and the answers need, with their names or numbers.
Confusion confusion(const Dataset& data, const Evaluation& evaluation);

/// The confusion matrix as an SVG picture: a row for each true class, shaded by its share of the row. Counts and
/// shares stand in the cells as long as there is room for them.
std::string confusion_svg(const Confusion& confusion, const std::string& title);

}  // namespace tessera::runtime
