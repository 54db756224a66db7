#include "runtime/phases.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>

#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/gpu.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

bool same_parameters(const TrainingPhase& a, const TrainingPhase& b) {
  const auto same = [](const tessera_parameter& x, const tessera_parameter& y) {
    return std::string_view(x.name) == y.name && x.offset == y.offset && x.rank == y.rank &&
           std::equal(x.shape, x.shape + x.rank, y.shape);
  };
  return a.parameter_floats == b.parameter_floats && a.optimizer_floats == b.optimizer_floats &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(), same);
}

}  // namespace

/// What a GPU holds of both phases: their copies of the parameters are the same.
struct AlternatingPhases::OnGpu {
  /// What a phase's answer lies in, so that one copy brings it: the step and the factor, then what it gives.
  struct Given {
    tessera_cuda_step step;
    float factor;
    float loss;
  };
  static constexpr std::int64_t loss_at = offsetof(Given, loss) / 4, losses_at = sizeof(Given) / 4;

  OnGpu(const TrainingPhase& first, const TrainingPhase& second, std::int64_t images)
      : model(named(first.name, first.cuda)),
        gpu(model),
        parameters(gpu, first.parameter_floats),
        gradients(GpuMemory::of_floats(gpu, first.parameter_floats)),
        optimizer(GpuMemory::of_floats(gpu, first.optimizer_floats)),
        answer(GpuMemory::of_floats(gpu, std::max(floats_of_answer(first, images), floats_of_answer(second, images)))),
        scratch(gpu, std::max(first.cuda->train_scratch_bytes(images), second.cuda->train_scratch_bytes(images))) {}

  /// Where the outputs begin: on 16 bytes, so that they are stored by so many.
  static std::int64_t outputs_at(const TrainingPhase& phase) {
    return (losses_at + std::ssize(phase.losses) + 3) / 4 * 4;
  }
  static std::int64_t floats_of_answer(const TrainingPhase& phase, std::int64_t images) {
    return outputs_at(phase) + size_product({images, phase.output_floats});
  }

  Model model;  ///< by which the GPU is opened
  Gpu gpu;
  GpuParameters parameters;
  GpuMemory gradients, optimizer, answer, scratch;
  std::optional<GpuMemory> images;
  bool loaded = false;         ///< the parameters are the GPU's
  mutable bool newer = false;  ///< and those of the CPU are from before the last step
};

AlternatingPhases::AlternatingPhases(const TrainingPhase& first, const TrainingPhase& second, std::int64_t batch,
                                     bool on_gpu)
    : phases_{first, second},
      batch_(batch),
      parameters_(Arena::of_floats(first.parameter_floats, first.alignment)),
      gradients_(Arena::of_floats(first.parameter_floats, first.alignment)),
      optimizer_(Arena::of_floats(first.optimizer_floats, first.alignment)),
      packed_{Arena::of_floats(on_gpu ? 0 : first.packed_floats, first.alignment),
              Arena::of_floats(on_gpu ? 0 : second.packed_floats, second.alignment)},
      scratch_(on_gpu ? 0 : std::max(first.scratch_bytes(batch), second.scratch_bytes(batch)), first.alignment) {
  if (!same_parameters(first, second))
    fail("the phases ", first.name, " and ", second.name, " are not over the same parameters");
  for (int phase : {0, 1}) {
    outputs_[phase].resize(static_cast<std::size_t>(size_product({batch, phases_[phase].output_floats})));
    losses_[phase].resize(phases_[phase].losses.size());
  }
  if (on_gpu) {
    for (const TrainingPhase& phase : phases_) {
      const Model model = named(phase.name, phase.cuda);
      Gpu(model).check_batch(batch);
    }
    if (first.cuda->packed_bytes != second.cuda->packed_bytes)
      fail("the phases ", first.name, " and ", second.name, " are of different precision, and on a GPU read one copy");
    gpu_ = std::make_unique<OnGpu>(first, second, batch);
  }
}

AlternatingPhases::~AlternatingPhases() = default;
AlternatingPhases::AlternatingPhases(AlternatingPhases&&) noexcept = default;

float* AlternatingPhases::parameters() const {
  if (gpu_ && gpu_->newer) {
    gpu_->parameters.read(parameters_.floats());
    gpu_->optimizer.read(optimizer_.floats(), 4 * phases_[0].optimizer_floats);
    gpu_->newer = false;
  }
  return parameters_.floats();
}

float* AlternatingPhases::optimizer() const {
  parameters();
  return optimizer_.floats();
}

void AlternatingPhases::check(int which, int code) const {
  if (code) fail("the ", phases_[which].name, ": ", phases_[which].error(code));
}

void AlternatingPhases::init(std::uint64_t seed) { check(0, phases_[0].init(parameters_.floats(), seed)); }

void AlternatingPhases::step(const float* images, std::int64_t batch, std::int64_t step, float factor,
                             const float (&learning_rate)[2]) {
  if (batch > batch_) fail("a batch of ", batch, " images, where there is room for ", batch_);
  if (!gpu_) {
    for (int phase : {0, 1}) run(phase, images, batch, step, factor, learning_rate[phase]);
    return;
  }
  if (!gpu_->loaded) {
    gpu_->parameters.write(parameters_.floats());
    gpu_->optimizer.write(optimizer_.floats(), 4 * phases_[0].optimizer_floats);
    gpu_->loaded = true;
  }
  if (!gpu_->images) gpu_->images = GpuMemory::of_floats(gpu_->gpu, size_product({batch_, phases_[0].image_floats}));
  gpu_->images->write(images, 4 * batch * phases_[0].image_floats);
  for (int phase : {0, 1}) run_on_gpu(phase, batch, step, factor, learning_rate[phase]);
}

void AlternatingPhases::demand_numbers(int which, std::int64_t step, float loss, const float* gradients) const {
  const TrainingPhase& phase = phases_[which];
  const auto diverged = [&](const auto&... what) {
    fail("training diverged in the ", phase.name, "'s phase of step ", step, ": ", what...);
  };
  for (std::size_t i = 0; i < phase.losses.size(); ++i)
    if (!std::isfinite(losses_[which][i])) diverged(phase.losses[i], " is not a number");
  if (!std::isfinite(loss)) diverged("its loss is not a number");
  for (const tessera_parameter& row : phase.parameters)
    if (!finite(gradients + row.offset, elements(Shape(row.shape, row.shape + row.rank))))
      diverged("the gradient of ", row.name, " is not a number");
}

void AlternatingPhases::run(int which, const float* images, std::int64_t batch, std::int64_t step, float factor,
                            float learning_rate) {
  const TrainingPhase& phase = phases_[which];
  float* const packed = packed_[which].floats();
  check(which, phase.pack(parameters(), packed));  // of what the other phase has changed
  float loss = 0;
  check(which,
        phase.loss_and_gradients(parameters(), packed, images, &factor, batch, batch, 0, step, outputs_[which].data(),
                                 losses_[which].data(), &loss, gradients_.floats(), scratch_.data()));
  demand_numbers(which, step, loss, gradients_.floats());
  check(which, phase.update(parameters(), packed, gradients_.floats(), optimizer(), step, learning_rate));
}

void AlternatingPhases::run_on_gpu(int which, std::int64_t batch, std::int64_t step, float factor,
                                   float learning_rate) {
  const TrainingPhase& phase = phases_[which];
  const Cuda& cuda = *phase.cuda;
  OnGpu& on = *gpu_;
  void* const stream = on.gpu.stream();
  const OnGpu::Given given{{0, step, learning_rate, 0}, factor, 0};
  on.answer.write(&given, sizeof given);
  float* const answer = on.answer.floats();
  auto* const counted = static_cast<tessera_cuda_step*>(on.answer.data());
  float *const loss = answer + OnGpu::loss_at, *const losses = answer + OnGpu::losses_at,
               *const outputs = answer + OnGpu::outputs_at(phase);
  const auto do_ = [&](int code) {
    if (code != 0) fail("the ", phase.name, " cannot go on: ", cuda.error(code));
  };
  do_(cuda.phase(on.parameters.floats(), on.parameters.packed(), on.images->floats(),
                 answer + offsetof(OnGpu::Given, factor) / 4, counted, batch, outputs, losses, loss,
                 on.gradients.floats(), on.scratch.data(), stream));
  do_(cuda.check_phase(losses, loss, on.gradients.floats(), counted, stream));
  do_(cuda.update(on.parameters.floats(), on.parameters.packed(), on.gradients.floats(), on.optimizer.floats(), counted,
                  on.scratch.data(), stream));
  const std::int64_t numbers = batch * phase.output_floats;
  std::vector<float> found(static_cast<std::size_t>(OnGpu::outputs_at(phase) + numbers));
  on.answer.read(found.data(), 4 * std::ssize(found));
  OnGpu::Given answered;
  std::memcpy(&answered, found.data(), sizeof answered);
  std::copy_n(found.begin() + OnGpu::losses_at, phase.losses.size(), losses_[which].begin());
  std::copy_n(found.end() - numbers, numbers, outputs_[which].begin());
  if (answered.step.stopped != 0) {
    on.gradients.read(gradients_.floats(), 4 * phase.parameter_floats);
    demand_numbers(which, step, answered.loss, gradients_.floats());
    fail("training diverged in the ", phase.name, "'s phase of step ", step);
  }
  on.newer = true;
}

float AlternatingPhases::loss(std::string_view name) const {
  for (int phase : {0, 1})
    for (std::size_t i = 0; i < losses_[phase].size(); ++i)
      if (phases_[phase].losses[i] == name) return losses_[phase][i];
  fail("there is no loss called ", name);
}

}  // namespace tessera::runtime
