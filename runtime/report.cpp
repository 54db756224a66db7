#include "runtime/report.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/inference.hpp"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/tree_reduce.hpp"

namespace tessera::runtime {

std::string evaluation_table(const Model& model, const Dataset& data, const Evaluation& evaluation) {
  const std::string loss = model.has_loss() ? "loss      " + fixed(evaluation.loss, 4) + "\n" : "";
  std::string out =
      text("images    ", grouped(data.size()), " (", data.source, ")\n", loss, "accuracy  ",
           fixed(100 * evaluation.accuracy(), 2), "% (", evaluation.correct, " of ", data.size(), ")\ntop 5     ",
           fixed(100 * evaluation.accuracy_of_five(), 2), "% (", evaluation.among_five, " of ", data.size(), ")\n\n");
  const auto classes = static_cast<std::size_t>(data.classes);
  std::size_t longest = std::string("class").size();
  for (const std::string& name : data.names) longest = std::max(longest, name.size());
  const int width = static_cast<int>(longest) * (data.names.empty() ? 1 : -1);  // numbers end in line, names begin so
  out += padded("class", width) + "   images   found   accuracy   most often taken for\n";
  for (std::size_t label = 0; label < classes; ++label) {
    std::int64_t count = 0;
    std::vector<std::int64_t> taken_for;
    for (std::size_t i = 0; i < data.labels.size(); ++i) {
      if (data.labels[i] != static_cast<std::int32_t>(label)) continue;
      const auto answer = static_cast<std::size_t>(evaluation.predicted[i]);
      if (answer >= taken_for.size()) taken_for.resize(answer + 1);
      ++count;
      ++taken_for[answer];
    }
    if (count == 0) continue;
    taken_for.resize(std::max(taken_for.size(), label + 1));
    const std::int64_t found = std::exchange(taken_for[label], 0);
    const auto most = std::max_element(taken_for.begin(), taken_for.end());
    out += padded(data.called(static_cast<std::int64_t>(label)), width) + padded(grouped(count), 9) +
           padded(grouped(found), 8) +
           padded(fixed(100.0 * static_cast<double>(found) / static_cast<double>(count), 2) + "%", 11);
    if (*most > 0)
      out += text("   ", data.called(most - taken_for.begin()), " (", *most, *most == 1 ? " time, " : " times, ",
                  probability(static_cast<double>(*most) / static_cast<double>(count)), ")");
    out += '\n';
  }
  return out;
}

namespace {

/// With four digits; what is not 1 is not rounded to it.
std::string honest(double probability) {
  const std::string shown = fixed(probability, 4);
  return probability < 1 && shown == "1.0000" ? ">0.9999" : shown;
}

std::string declaration_text(const Model& model) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(model.declaration_hash));
  return hash;
}

}  // namespace

std::string prediction_line(const std::string& name, std::span<const float> probabilities, std::int64_t top,
                            const std::vector<std::string>& names) {
  std::string out = padded(name, -28);
  for (const std::int32_t label : likeliest(probabilities, top))
    out += text(
        "  ",
        static_cast<std::size_t>(label) < names.size() ? names[static_cast<std::size_t>(label)] : std::to_string(label),
        " ", honest(probabilities[static_cast<std::size_t>(label)]));
  return out + '\n';
}

std::string answer_text(std::span<const float> probabilities, std::int64_t top, const std::vector<std::string>& names) {
  std::string out;
  for (const std::int32_t label : likeliest(probabilities, top)) {
    const auto at = static_cast<std::size_t>(label);
    out += text(out.empty() ? "" : ", ", at < names.size() ? names[at] : std::to_string(label), " ",
                probability(probabilities[at]));
  }
  return out;
}

std::string prediction_json(const std::string& name, std::optional<std::int64_t> which,
                            std::span<const float> probabilities, std::int64_t top,
                            const std::vector<std::string>& names) {
  nlohmann::ordered_json answer{{"file", name}};
  if (which) answer["image"] = *which;
  answer["classes"] = nlohmann::ordered_json::array();
  for (const std::int32_t label : likeliest(probabilities, top)) {
    const auto at = static_cast<std::size_t>(label);
    nlohmann::ordered_json row{{"class", label}};
    if (at < names.size()) row["name"] = names[at];
    // As it is printed elsewhere: a float's digits beyond these say nothing. What is not a number has no JSON but null.
    row["probability"] =
        std::isfinite(probabilities[at]) ? nlohmann::ordered_json(rounded(probabilities[at])) : nullptr;
    answer["classes"].push_back(row);
  }
  // A name that is no UTF-8 gets its replacement characters.
  return answer.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string version_text(const Model& model) {
  return text(model.name, ", declaration ", declaration_text(model), ", made with Tessera ", TESSERA_VERSION);
}

std::vector<std::pair<std::string, std::string>> recipe_rows(const Model& model, const Recipe& recipe) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"Epochs", std::to_string(recipe.epochs)},
      {"Batch", recipe.accumulate > 1 ? text(recipe.batch, ", of which ", recipe.accumulate, " make one step")
                                      : std::to_string(recipe.batch)},
      {"Optimizer", model.optimizer},
      {"Learning rate", shortest(recipe.learning_rate) + ", " + model.schedule},
      {"Seed", std::to_string(recipe.seed)}};
  const auto share = [&](const char* name, double value) {
    if (value > 0) rows.emplace_back(name, shortest(value));
  };
  share("Label smoothing", recipe.smoothing);
  share("Mixup", recipe.mixup);
  share("CutMix", recipe.cutmix);
  if (const Augmentation& a = recipe.augment; a.any()) {
    std::string said;
    const auto add = [&](const std::string& part) { said += (said.empty() ? "" : ", ") + part; };
    if (a.crop > 0) add(text("crop with a border of ", a.crop));
    if (a.flip) add("flip");
    if (a.operations > 0) add(text("RandAugment of ", a.operations, " at magnitude ", a.magnitude));
    if (a.erase > 0) add("erasing " + shortest(a.erase));
    rows.emplace_back("Augmentation", said);
  }
  if (recipe.patience > 0) rows.emplace_back("Patience", text(recipe.patience, " epochs"));
  return rows;
}

std::string ranks_text(const Model& model, const Recipe& recipe, int ranks, std::int64_t parts,
                       const std::string& network) {
  if (ranks > parts) fail(ranks, " ranks cannot share ", parts, " parts of a step (--accumulate)");
  const std::int64_t floats = model.parameter_floats;
  std::int64_t sent = 0, subtrees_of_one = 0, slice = 0, buffers = 0, messages = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const PartRange share = share_of_parts(parts, rank, ranks);
    const auto nodes = static_cast<std::int64_t>(subtrees(share, parts).size());
    sent = std::max(sent, bytes_of_step(floats, parts, rank, ranks));
    subtrees_of_one = std::max(subtrees_of_one, nodes);
    slice = std::max(slice, slice_of(floats, rank, ranks).size());
    buffers = std::max<std::int64_t>(buffers, PartTree::buffers(share.first, share.last, parts));
    messages = std::max(messages, (nodes + 1) * (ranks - 1));
  }
  // What is received is as much as is sent.
  const std::int64_t state = static_cast<std::int64_t>(model.optimizer_state.size()) * slice;
  const std::int64_t memory = 4 * (2 * floats + model.packed_floats + state + buffers * floats) + sent +
                              model.train_scratch_bytes(model.images_at_once(recipe.batch));
  const std::int64_t ring = 8 * floats * (ranks - 1) / ranks;
  std::string out = text("\nranks         ", ranks, ", which share ", parts, " parts of a step, ",
                         grouped(size_product({recipe.batch, parts})), " images\nsent          ", grouped(sent),
                         " bytes in a step by the rank that sends most");
  if (ring > 0) out += text(", ", fixed(static_cast<double>(sent) / static_cast<double>(ring), 2), " times a ring's");
  out += text("\nmemory        ", bytes(memory), " a rank beside its images, ", bytes(4 * state),
              " of it its share of the optimiser's state\n");
  if (network.empty()) return out;
  double gigabits = 0;
  const char* const end = network.data() + network.size();
  const auto [unit, error] = std::from_chars(network.data(), end, gigabits);
  const std::string kind(unit, end);
  if (error != std::errc{} || !(gigabits > 0) || gigabits > 1e6 || (kind != "GbE" && kind != "IB"))
    fail("--network is a rank's gigabits a second and GbE or IB, as in 100GbE or 400IB, not ", printable(network));
  const double of_message = kind == "IB" ? 2e-6 : 20e-6;
  const double seconds = static_cast<double>(messages) * of_message + static_cast<double>(sent) * 8 / (gigabits * 1e9);
  return out + text("network       ", fixed(1e3 * seconds, 3), " ms for the exchange of a step at ", shortest(gigabits),
                    " Gb/s a rank and ", shortest(1e6 * of_message), " us a message, on paper\n");
}

std::string summary_text(const Model& model, const Recipe& recipe) {
  std::int64_t count = 0;
  for (const tessera_parameter& p : model.parameters) count += elements(Shape(p.shape, p.shape + p.rank));
  const std::int64_t predicting = 4 * model.parameter_floats + model.forward_scratch_bytes(1);
  std::string to_train, trained;
  if (model.has_loss()) {
    const std::int64_t training = 4 * (2 * model.parameter_floats + model.optimizer_floats()) +
                                  model.train_scratch_bytes(model.images_at_once(recipe.batch));
    to_train = text(", ", bytes(training), " to train at batch ", recipe.batch);
    trained = text("recipe        ", recipe.epochs, " epochs, batch ", recipe.batch, ", learning rate ",
                   shortest(recipe.learning_rate), ", seed ", recipe.seed, "\n");
  }
  std::string out = model.summary;
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out + text("\nmodel         ", model.name, " (declaration ", declaration_text(model), ")\nparameters    ",
                    grouped(count), " in ", model.parameters.size(), " tensors\ninput         ", model.image_shape[0],
                    "x", model.image_shape[1], "x", model.image_shape[2], ", outputs ", model.classes,
                    "\nmemory        ", bytes(predicting), " to predict one image", to_train, "\n", trained,
                    "kernels       ", model.isa(), "\n");
}

}  // namespace tessera::runtime
