#include "runtime/evaluate.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/progress.hpp"

namespace tessera::runtime {

std::int32_t largest(std::span<const float> row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

bool among_largest(std::span<const float> row, std::int32_t label, std::int64_t k) {
  const auto at = static_cast<std::size_t>(label);
  std::int64_t before = 0;
  for (std::size_t i = 0; i < row.size(); ++i) before += i < at ? row[i] >= row[at] : row[i] > row[at];
  return std::isfinite(row[at]) && before < k;
}

void check_fit(const Model& model, const Dataset& data) {
  const auto& shape = model.image_shape;
  if (data.channels != shape[0] || data.height != shape[1] || data.width != shape[2])
    fail(model.name, " reads images of ", shape[0], "x", shape[1], "x", shape[2], ", the ", data.source, " have ",
         data.channels, "x", data.height, "x", data.width);
  if (data.classes > model.classes)
    fail(model.name, " tells ", model.classes, " classes apart, the ", data.source, " have ", data.classes);
}

Evaluation evaluate(const Model& model, const Recipe& recipe, const Inference& inference, const Dataset& data,
                    std::int64_t batch, const Communicator& ranks) {
  check_fit(model, data);
  const Arena images = Arena::of_floats(size_product({batch, data.image_size()}), model.alignment);
  const Arena outputs = Arena::of_floats(size_product({batch, model.classes}), model.alignment);
  const std::int64_t batches = (data.size() + batch - 1) / batch;
  const auto first_batch = [&](int rank) { return rank * batches / ranks.size(); };
  struct Answer {
    std::int32_t predicted;
    float confidence;
    std::int32_t among_five;
  };
  std::vector<Answer> answers(static_cast<std::size_t>(data.size()));
  std::vector<float> losses(static_cast<std::size_t>(batches));
  Counter counter("evaluating", data.size());
  for (std::int64_t b = first_batch(ranks.rank()); b < first_batch(ranks.rank() + 1); ++b) {
    const std::int64_t first = b * batch, size = std::min(batch, data.size() - first);
    for (std::int64_t i = 0; i < size; ++i)
      normalize(data.image(first + i), data.channels, recipe.input, images.floats() + i * data.image_size());
    const std::int32_t* labels = data.labels.data() + first;
    if (model.has_loss())
      inference.evaluate(images.floats(), labels, size, outputs.floats(), &losses[static_cast<std::size_t>(b)]);
    else
      inference.forward(images.floats(), size, outputs.floats());
    for (std::int64_t i = 0; i < size; ++i) {
      const std::span<const float> row(outputs.floats() + i * model.classes, static_cast<std::size_t>(model.classes));
      const std::int32_t answer = largest(row);
      const float sure = probabilities(model, row)[static_cast<std::size_t>(answer)];
      answers[static_cast<std::size_t>(first + i)] = {answer, std::isfinite(sure) ? sure : 0,
                                                      among_largest(row, labels[i], 5)};
    }
    counter.add(size);
  }
  std::vector<std::int64_t> of_answers, of_losses;
  for (int rank = 0; rank <= ranks.size(); ++rank) {
    of_losses.push_back(first_batch(rank) * std::int64_t{sizeof(float)});
    of_answers.push_back(std::min(first_batch(rank) * batch, data.size()) * std::int64_t{sizeof(Answer)});
  }
  ranks.all_gather(losses.data(), of_losses);
  ranks.all_gather(answers.data(), of_answers);
  Evaluation result;
  for (std::int64_t b = 0; b < batches; ++b)
    result.loss += static_cast<double>(losses[static_cast<std::size_t>(b)]) *
                   static_cast<double>(std::min(batch, data.size() - b * batch));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    result.predicted.push_back(answers[i].predicted);
    result.confidence.push_back(answers[i].confidence);
    result.correct += answers[i].predicted == data.labels[i];
    result.among_five += answers[i].among_five;
  }
  if (data.size() > 0) result.loss /= static_cast<double>(data.size());
  return result;
}

}  // namespace tessera::runtime
