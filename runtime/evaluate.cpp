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
                    std::int64_t batch) {
  check_fit(model, data);
  const Arena images = Arena::of_floats(size_product({batch, data.image_size()}), model.alignment);
  const Arena outputs = Arena::of_floats(size_product({batch, model.classes}), model.alignment);
  Evaluation result;
  Counter counter("evaluating", data.size());
  for (std::int64_t first = 0; first < data.size(); first += batch) {
    const std::int64_t size = std::min(batch, data.size() - first);
    for (std::int64_t i = 0; i < size; ++i)
      normalize(data.image(first + i), data.channels, recipe.input, images.floats() + i * data.image_size());
    float loss = 0;
    const std::int32_t* labels = data.labels.data() + first;
    if (model.has_loss())
      inference.evaluate(images.floats(), labels, size, outputs.floats(), &loss);
    else
      inference.forward(images.floats(), size, outputs.floats());
    result.loss += static_cast<double>(loss) * static_cast<double>(size);
    for (std::int64_t i = 0; i < size; ++i) {
      const std::span<const float> row(outputs.floats() + i * model.classes, static_cast<std::size_t>(model.classes));
      const std::int32_t answer = largest(row);
      result.predicted.push_back(answer);
      const float sure = probabilities(model, row)[static_cast<std::size_t>(answer)];
      result.confidence.push_back(std::isfinite(sure) ? sure : 0);
      result.correct += answer == labels[i];
      result.among_five += among_largest(row, labels[i], 5);
    }
    counter.add(size);
  }
  if (data.size() > 0) result.loss /= static_cast<double>(data.size());
  return result;
}

}  // namespace tessera::runtime
