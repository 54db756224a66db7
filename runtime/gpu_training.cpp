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

GpuTraining::GpuTraining(const Model& model, const Recipe& recipe, const Gpu& gpu, int sums, const Communicator& ranks)
    : model_(model),
      gpu_(gpu),
      cuda_(gpu.cuda()),
      ranks_(ranks),
      recipe_(recipe),
      state_floats_(static_cast<std::int64_t>(model.optimizer_state.size()) *
                    slice_of(model.parameter_floats, ranks.rank(), ranks.size()).size()),
      parameters_(gpu, model.parameter_floats),
      gradients_(GpuMemory::of_floats(gpu, model.parameter_floats)),
      // Not nothing where nothing is kept from step to step: a function wants no null pointer.
      optimizer_(GpuMemory::of_floats(gpu, std::max<std::int64_t>(state_floats_, 1))),
      answer_(gpu, outputs_at + 4 * checked(gpu, recipe.batch) * model.classes),
      scratch_(gpu, cuda_.train_scratch_bytes(recipe.batch)),
      inputs_{{model, recipe, gpu}, {model, recipe, gpu}},
      copies_(cuda_.open_copies(), cuda_.close) {
  for (int i = 0; i < sums; ++i) sums_.push_back(GpuMemory::of_floats(gpu, model.parameter_floats));
  cuda_.wait_for(copies_.get(), gpu.stream());  // which clears the memory
}

GpuTraining::~GpuTraining() {
  try {
    cuda_.wait(copies_.get());  // a batch that nobody came for
  } catch (...) {               // what failed was told by whoever waited for a step
  }
  for (const void* memory : pinned_) cuda_.unpin(const_cast<void*>(memory));
}

GpuTraining::Inputs::Inputs(const Model& model, const Recipe& recipe, const Gpu& gpu)
    : images(GpuMemory::of_floats(gpu, recipe.batch * image_floats(model))),
      labels(GpuMemory::of_floats(gpu, recipe.softens() ? 0 : recipe.batch)),
      targets(GpuMemory::of_floats(gpu, recipe.softens() ? recipe.batch * model.classes : 0)),
      graph(nullptr, gpu.cuda().release_graph) {}

void GpuTraining::load(const float* parameters, const float* optimizer) const {
  parameters_.write(parameters);
  optimizer_.write(optimizer, 4 * state_floats_);
}

void GpuTraining::store(float* parameters, float* optimizer) const {
  parameters_.read(parameters);
  optimizer_.read(optimizer, 4 * state_floats_);
}

void GpuTraining::store_gradients(float* gradients) const { gradients_.read(gradients, 4 * model_.parameter_floats); }

void GpuTraining::put(const Batch& batch, std::uint64_t seed, std::int64_t number, float learning_rate) {
  size_ = batch.size;
  if (std::exchange(ahead_, nullptr) == batch.images) {
    which_ = 1 - which_;
    cuda_.wait_for(gpu_.stream(), copies_.get());
  } else {
    copy(inputs_[which_], batch, gpu_.stream());
  }
  given_ = {seed, number, learning_rate, 0};
  answer_.write(&given_, sizeof given_);
}

void GpuTraining::copy(const Inputs& inputs, const Batch& batch, void* stream) const {
  cuda_.copy_in(inputs.images.data(), batch.images, 4 * batch.size * image_floats(model_), stream);
  if (recipe_.softens())
    cuda_.copy_in(inputs.targets.data(), batch.targets, 4 * batch.size * model_.classes, stream);
  else
    cuda_.copy_in(inputs.labels.data(), batch.labels, 4 * batch.size, stream);
}

void GpuTraining::pin(const void* memory, std::int64_t bytes) {
  if (seen_.insert(memory).second && cuda_.pin(const_cast<void*>(memory), bytes)) pinned_.insert(memory);
}

void GpuTraining::put_ahead(const Batch& batch) {
  pin(batch.images, 4 * recipe_.batch * image_floats(model_));
  ahead_ = batch.images;
  copy(inputs_[1 - which_], batch, copies_.get());
}

void GpuTraining::kernels() const {
  const Inputs& inputs = inputs_[which_];
  gpu_.check(cuda_.loss_and_gradients(parameters_.floats(), parameters_.packed(), inputs.images.floats(),
                                      static_cast<const std::int32_t*>(inputs.labels.data()), inputs.targets.floats(),
                                      step(), size_, outputs(), loss(), gradients_.floats(), scratch_.data(),
                                      gpu_.stream()));
  gpu_.check(cuda_.check(loss(), gradients_.floats(), step(), gpu_.stream()));
  if (recipe_.accumulate == 1)
    gpu_.check(cuda_.update(parameters_.floats(), parameters_.packed(), gradients_.floats(), optimizer_.floats(),
                            step(), scratch_.data(), gpu_.stream()));
}

void GpuTraining::start() {
  if (size_ < recipe_.batch) return kernels();  // the last of an epoch
  // CUDA loads a kernel where it is started first, which a graph is no place for.
  if (!std::exchange(warm_, true)) return kernels();
  auto& graph = inputs_[which_].graph;
  if (!graph) {
    cuda_.begin_graph(gpu_.stream());
    kernels();
    graph.reset(cuda_.end_graph(gpu_.stream()));
  }
  cuda_.run_graph(graph.get(), gpu_.stream());
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
}

void GpuTraining::update(std::int64_t step_number, std::int64_t parts, float share, float learning_rate) {
  given_.step = step_number;
  given_.learning_rate = learning_rate;
  answer_.write(&given_, sizeof given_);
  if (reduce_) {
    update_slice(parts, share);
  } else {
    float* const mean = sums_[static_cast<std::size_t>(tree_.nodes().front().buffer)].floats();
    gpu_.check(cuda_.gather(mean, mean, 0.0f, share, gpu_.stream()));
    gpu_.check(cuda_.update(parameters_.floats(), parameters_.packed(), mean, optimizer_.floats(), step(),
                            scratch_.data(), gpu_.stream()));
  }
  tree_.clear();
}

void GpuTraining::update_slice(std::int64_t parts, float share) {
  const Slice own = reduce_->slice();
  float* const mean = gradients_.floats();
  reduce_->reduce(tree_.nodes(), sums_, parts, share, mean);
  if (cuda_.squares) {
    gpu_.check(cuda_.squares(mean, static_cast<std::int32_t>(own.first_chunk),
                             static_cast<std::int32_t>(own.last_chunk), reduce_->squares(), gpu_.stream()));
    reduce_->all_gather_squares();
  }
  gpu_.check(cuda_.update_range(parameters_.floats(), parameters_.packed(), mean, optimizer_.floats(), own.first,
                                own.last, reduce_->squares(), step(), scratch_.data(), gpu_.stream()));
  reduce_->all_gather(parameters_.floats());
  gpu_.check(cuda_.pack(parameters_.floats(), parameters_.packed(), gpu_.stream()));
}

}  // namespace tessera::runtime
