#include "runtime/cpu_work.hpp"

#include <algorithm>

#include "runtime/batches.hpp"
#include "runtime/inference.hpp"
#include "runtime/philox.hpp"

namespace tessera::runtime {

Arena noise(const Model& model, std::int64_t images) {
  const std::int64_t image = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  Arena all = Arena::of_floats(size_product({images, image}), model.alignment);
  Random random(1, 0, 0);
  std::generate_n(all.floats(), images * image, [&] { return static_cast<float>(random.uniform(-1, 1)); });
  return all;
}

Arena starting_parameters(const Model& model) {
  Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  check(model, model.init(parameters.floats(), 1));
  return parameters;
}

ForwardWork::ForwardWork(const Model& model, std::int64_t batch)
    : model_(model),
      batch_(batch),
      parameters_(starting_parameters(model)),
      packed_(packed(model, parameters_.floats())),
      images_(noise(model, batch)),
      outputs_(Arena::of_floats(size_product({batch, model.classes}), model.alignment)),
      scratch_(model.forward_scratch_bytes(batch), model.alignment) {}

void ForwardWork::operator()() {
  check(model_, model_.forward(parameters_.floats(), packed_.floats(), images_.floats(), batch_, outputs_.floats(),
                               scratch_.data()));
}

Labels::Labels(const Model& model, std::int64_t batch)
    : targets_(Arena::of_floats(size_product({batch, model.classes}), model.alignment)) {
  for (std::int64_t i = 0; i < batch; ++i) {
    numbers_.push_back(static_cast<std::int32_t>(i % model.classes));
    targets_.floats()[i * model.classes + numbers_.back()] = 1;
  }
}

TrainingWork::TrainingWork(const Model& model, std::int64_t batch)
    : model_(model),
      batch_(batch),
      labels_(model, batch),
      parameters_(starting_parameters(model)),
      packed_(Arena::of_floats(model.packed_floats, model.alignment)),
      gradients_(Arena::of_floats(model.parameter_floats, model.alignment)),
      optimizer_(Arena::of_floats(model.optimizer_floats(), model.alignment)),
      images_(noise(model, batch)),
      outputs_(Arena::of_floats(size_product({batch, model.classes}), model.alignment)),
      scratch_(model.train_scratch_bytes(model.images_at_once(batch)), model.alignment) {
  check(model, model.pack(parameters_.floats(), packed_.floats()));
}

void TrainingWork::operator()() {
  const Batch batch{
      .images = images_.floats(), .labels = labels_.numbers(), .targets = labels_.targets(), .size = batch_};
  float loss = 0;
  check(model_, model_.train_step(parameters_.floats(), packed_.floats(), gradients_.floats(), optimizer_.floats(),
                                  batch, outputs_.floats(), &loss, scratch_.data()));
}

}  // namespace tessera::runtime
