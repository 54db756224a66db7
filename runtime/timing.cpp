#include "runtime/timing.hpp"

#include <algorithm>
#include <chrono>

#include "runtime/arena.hpp"
#include "runtime/batches.hpp"
#include "runtime/cpu_work.hpp"
#include "runtime/error.hpp"
#include "runtime/gpu_training.hpp"
#include "runtime/inference.hpp"
#include "runtime/numbers.hpp"
#include "runtime/progress.hpp"

namespace tessera::runtime {
namespace {

template <class Run>
double median_seconds(std::int64_t runs, Counter& counter, Run&& run) {
  using Clock = std::chrono::steady_clock;
  run();
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < runs; ++i) {
    const auto before = Clock::now();
    run();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
    counter.add(1);
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

double forward_on(const Gpu& gpu, const Model& model, std::int64_t size, std::int64_t runs, Counter& counter) {
  gpu.check_batch(size);
  const auto floats = [&](std::int64_t count) { return GpuMemory::of_floats(gpu, count); };
  const Arena parameters = starting_parameters(model), images = noise(model, size);
  const std::int64_t image = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  const GpuParameters there(gpu, model.parameter_floats);
  const GpuMemory input = floats(size * image), answers = floats(size * model.classes),
                  scratch(gpu, gpu.cuda().forward_scratch_bytes(size));
  there.write(parameters.floats());
  input.write(images.floats(), 4 * size * image);
  return median_seconds(runs, counter, [&] {
    gpu.check(gpu.cuda().forward(there.floats(), there.packed(), input.floats(), size, answers.floats(), scratch.data(),
                                 gpu.stream()));
    gpu.wait();
  });
}

double training_on(const Gpu& gpu, const Model& model, Recipe recipe, std::int64_t size, std::int64_t runs,
                   Counter& counter) {
  const Arena parameters = starting_parameters(model), images = noise(model, size),
              state = Arena::of_floats(model.optimizer_floats(), model.alignment);
  const Labels labels(model, size);
  recipe.batch = size;
  recipe.accumulate = 1;
  GpuTraining there(model, recipe, gpu);
  there.load(parameters.floats(), state.floats());
  there.put({.images = images.floats(), .labels = labels.numbers(), .targets = labels.targets(), .size = size}, 1, 1,
            1e-4f);
  there.start();  // so that the run that does not count makes the graph
  return median_seconds(runs, counter, [&] {
    there.start();
    gpu.wait();
  });
}

}  // namespace

std::string timing_table(const Model& model, const Recipe& recipe, const std::vector<std::int64_t>& batches,
                         std::int64_t runs, const Gpu* gpu) {
  std::string table = text("kernels ", gpu ? "CUDA on " + gpu->name() : model.isa(), ", median of ", runs,
                           runs == 1 ? " run" : " runs", "\n\nwhat            batch           ms     images/s\n");
  const auto row = [&](const char* what, std::int64_t batch, double seconds) {
    table += padded(what, -14) + padded(std::to_string(batch), 7) + padded(fixed(1000 * seconds, 3), 13) +
             padded(grouped(static_cast<std::int64_t>(static_cast<double>(batch) / seconds)), 13) + '\n';
  };
  std::vector<bool> kinds{false};
  if (model.has_loss()) kinds.push_back(true);
  Counter counter("timing runs", static_cast<std::int64_t>(kinds.size() * batches.size()) * runs);
  for (const bool training : kinds)
    for (const std::int64_t size : batches) {
      if (!gpu && training)
        row("training step", size, median_seconds(runs, counter, TrainingWork(model, size)));
      else if (!gpu)
        row("forward", size, median_seconds(runs, counter, ForwardWork(model, size)));
      else if (training)
        row("training step", size, training_on(*gpu, model, recipe, size, runs, counter));
      else
        row("forward", size, forward_on(*gpu, model, size, runs, counter));
    }
  return table;
}

}  // namespace tessera::runtime
