// What eval, predict and summary print.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dataset.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// Loss, where the model has one, accuracy, how often the class is among the five likeliest, and for each class: how
/// many there are, how many were found, and what they are most often taken for.
std::string evaluation_table(const Model& model, const Dataset& data, const Evaluation& evaluation);

/// One line: the name, the most likely class with its probability, and the next ones, `top` in all. Classes are told by
/// their names or, where there are none, by their numbers.
std::string prediction_line(const std::string& name, std::span<const float> probabilities, std::int64_t top,
                            const std::vector<std::string>& names);

/// "cat 98.2%, dog 1.1%": the likeliest.
std::string answer_text(std::span<const float> probabilities, std::int64_t top, const std::vector<std::string>& names);

/// The same as an object in JSON: {"file": NAME, "image": WHICH, "classes": [{"class": 3, "name": "cat",
/// "probability": 0.98}, ...]}; "image" where the file holds several, "name" where the classes have names.
std::string prediction_json(const std::string& name, std::optional<std::int64_t> which,
                            std::span<const float> probabilities, std::int64_t top,
                            const std::vector<std::string>& names);

/// "NAME, declaration 5a3b..., made with Tessera 0.1.0".
std::string version_text(const Model& model);

/// What a recipe says, in names and values.
std::vector<std::pair<std::string, std::string>> recipe_rows(const Model& model, const Recipe& recipe);

/// What so many ranks send in a step of `parts` parts, what memory each takes and, unless `network` is empty ("100GbE",
/// "400IB": a rank's gigabits a second over Ethernet or InfiniBand), how long a step's exchange takes by the alpha-beta
/// model: a time for each message and a time for each byte. Throws an Error where there are more ranks than parts.
std::string ranks_text(const Model& model, const Recipe& recipe, int ranks, std::int64_t parts,
                       const std::string& network);

/// The shape table and what the model takes: parameters, memory for one image and for a training batch.
std::string summary_text(const Model& model, const Recipe& recipe);

}  // namespace tessera::runtime
