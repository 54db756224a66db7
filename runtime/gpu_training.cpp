#include "runtime/gpu_training.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace tessera::runtime {
namespace {

std::int64_t image_floats(const Model& model) {
  return model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
}

/// So many images, where the kernels have room for them.
std::int64_t checked(const Gpu& gpu, std::int64_t batch) {
  gpu.check_batch(batch);
  return batch;
}

}  // namespace

GpuTraining::GpuTraining(const Model& model, const Recipe& recipe, const Gpu& gpu)
    : model_(model),
      gpu_(gpu),
      cuda_(gpu.cuda()),
      recipe_(recipe),
      parameters_(gpu, model.parameter_floats),
      gradients_(GpuMemory::of_floats(gpu, model.parameter_floats)),
      // Not nothing where nothing is kept from step to step: a function wants no null pointer.
      optimizer_(GpuMemory::of_floats(gpu, std::max<std::int64_t>(model.optimizer_floats(), 1))),
      images_(GpuMemory::of_floats(gpu, checked(gpu, recipe.batch) * image_floats(model))),
      labels_(GpuMemory::of_floats(gpu, recipe.softens() ? 0 : recipe.batch)),
      targets_(GpuMemory::of_floats(gpu, recipe.softens() ? recipe.batch * model.classes : 0)),
      answer_(gpu, outputs_at + 4 * recipe.batch * model.classes),
      scratch_(gpu, cuda_.train_scratch_bytes(recipe.batch)),
      graph_(nullptr, cuda_.release_graph) {
  if (recipe.accumulate == 1) return;
  for (int i = 0; i < PartTree::buffers(0, recipe.accumulate, recipe.accumulate); ++i)
    sums_.push_back(GpuMemory::of_floats(gpu, model.parameter_floats));
}

void GpuTraining::load(const float* parameters, const float* optimizer) const {
  parameters_.write(parameters);
  optimizer_.write(optimizer, 4 * model_.optimizer_floats());
}

void GpuTraining::store(float* parameters, float* optimizer) const {
  parameters_.read(parameters);
  optimizer_.read(optimizer, 4 * model_.optimizer_floats());
}

void GpuTraining::store_gradients(float* gradients) const { gradients_.read(gradients, 4 * model_.parameter_floats); }

void GpuTraining::put(const Batch& batch, std::uint64_t seed, std::int64_t number, float learning_rate) {
  size_ = batch.size;
  images_.write(batch.images, 4 * size_ * image_floats(model_));
  if (recipe_.softens())
    targets_.write(batch.targets, 4 * size_ * model_.classes);
  else
    labels_.write(batch.labels, 4 * size_);
  given_ = {seed, number, learning_rate, 0};
  answer_.write(&given_, sizeof given_);
}

void GpuTraining::kernels() const {
  gpu_.check(cuda_.loss_and_gradients(parameters_.floats(), parameters_.packed(), images_.floats(),
                                      static_cast<const std::int32_t*>(labels_.data()), targets_.floats(), step(),
                                      size_, outputs(), loss(), gradients_.floats(), scratch_.data(), gpu_.stream()));
  gpu_.check(cuda_.check(loss(), gradients_.floats(), step(), gpu_.stream()));
  if (recipe_.accumulate == 1)
    gpu_.check(cuda_.update(parameters_.floats(), parameters_.packed(), gradients_.floats(), optimizer_.floats(),
                            step(), scratch_.data(), gpu_.stream()));
}

void GpuTraining::start() {
  if (size_ < recipe_.batch) return kernels();  // the last of an epoch
  // CUDA loads a kernel where it is started first, which a graph is no place for.
  if (!std::exchange(warm_, true)) return kernels();
  if (!graph_) {
    cuda_.begin_graph(gpu_.stream());
    kernels();
    graph_.reset(cuda_.end_graph(gpu_.stream()));
  }
  cuda_.run_graph(graph_.get(), gpu_.stream());
}

GpuTraining::Answer GpuTraining::answer(float* outputs) const {
  std::vector<char> bytes(static_cast<std::size_t>(outputs_at + 4 * size_ * model_.classes));
  answer_.read(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  tessera_cuda_step step;
  std::memcpy(&step, bytes.data(), sizeof step);
  Answer answer;
  std::memcpy(&answer.loss, bytes.data() + loss_at, sizeof answer.loss);
  answer.stopped = step.stopped != 0;
  std::memcpy(outputs, bytes.data() + outputs_at, bytes.size() - outputs_at);
  return answer;
}

void GpuTraining::gather(std::int64_t part, std::int64_t parts) {
  tree_.add(part, parts, [&](int into, int from, bool kept) {
    const bool fresh = from == PartTree::fresh;
    gpu_.check(cuda_.gather(sums_[static_cast<std::size_t>(into)].floats(),
                            fresh ? gradients_.floats() : sums_[static_cast<std::size_t>(from)].floats(),
                            kept ? 1.0f : 0.0f, fresh ? static_cast<float>(size_) : 1.0f, gpu_.stream()));
  });
  gathered_images_ += size_;
}

void GpuTraining::update(std::int64_t step_number, float learning_rate) {
  float* const sum = sums_[static_cast<std::size_t>(tree_.nodes().front().buffer)].floats();
  tree_.clear();
  const float share = 1 / static_cast<float>(std::exchange(gathered_images_, 0));
  gpu_.check(cuda_.gather(sum, sum, 0.0f, share, gpu_.stream()));
  given_.step = step_number;
  given_.learning_rate = learning_rate;
  answer_.write(&given_, sizeof given_);
  gpu_.check(cuda_.update(parameters_.floats(), parameters_.packed(), sum, optimizer_.floats(), step(), scratch_.data(),
                          gpu_.stream()));
}

}  // namespace tessera::runtime
