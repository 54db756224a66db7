#include "runtime/timing.hpp"

#include <algorithm>
#include <chrono>
#include <functional>

#include "runtime/arena.hpp"
#include "runtime/batches.hpp"
#include "runtime/error.hpp"
#include "runtime/gpu_training.hpp"
#include "runtime/inference.hpp"
#include "runtime/numbers.hpp"
#include "runtime/philox.hpp"
#include "runtime/progress.hpp"

namespace tessera::runtime {
namespace {

double median_seconds(std::int64_t runs, Counter& counter, const std::function<void()>& run) {
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

}  // namespace

std::string timing_table(const Model& model, const Recipe& recipe, const std::vector<std::int64_t>& batches,
                         std::int64_t runs, const Gpu* gpu) {
  const std::int64_t image = model.image_shape[0] * model.image_shape[1] * model.image_shape[2];
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  check(model, model.init(parameters.floats(), 1));
  const Arena weights = packed(model, parameters.floats());
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
      const Arena images = Arena::of_floats(size_product({size, image}), model.alignment);
      Random random(1, 0, 0);
      std::generate_n(images.floats(), size * image, [&] { return static_cast<float>(random.uniform(-1, 1)); });
      const Arena outputs = Arena::of_floats(size_product({size, model.classes}), model.alignment);
      if (!training && gpu) {
        gpu->check_batch(size);
        const auto floats = [&](std::int64_t count) { return GpuMemory::of_floats(*gpu, count); };
        const GpuParameters there(*gpu, model.parameter_floats);
        const GpuMemory input = floats(size * image), answers = floats(size * model.classes),
                        scratch(*gpu, gpu->cuda().forward_scratch_bytes(size));
        there.write(parameters.floats());
        input.write(images.floats(), 4 * size * image);
        row("forward", size, median_seconds(runs, counter, [&] {
              gpu->check(gpu->cuda().forward(there.floats(), there.packed(), input.floats(), size, answers.floats(),
                                             scratch.data(), gpu->stream()));
              gpu->wait();
            }));
        continue;
      }
      if (!training) {
        const Arena scratch(model.forward_scratch_bytes(size), model.alignment);
        row("forward", size, median_seconds(runs, counter, [&] {
              check(model, model.forward(parameters.floats(), weights.floats(), images.floats(), size, outputs.floats(),
                                         scratch.data()));
            }));
        continue;
      }
      std::vector<std::int32_t> labels;
      const Arena targets = Arena::of_floats(size_product({size, model.classes}), model.alignment);
      for (std::int64_t i = 0; i < size; ++i) {
        labels.push_back(static_cast<std::int32_t>(i % model.classes));
        targets.floats()[i * model.classes + labels.back()] = 1;
      }
      const Batch batch{.images = images.floats(), .labels = labels.data(), .targets = targets.floats(), .size = size};
      if (gpu) {
        Recipe of_one_batch = recipe;
        of_one_batch.batch = size;
        of_one_batch.accumulate = 1;
        GpuTraining there(model, of_one_batch, *gpu);
        const Arena state = Arena::of_floats(model.optimizer_floats(), model.alignment);
        there.load(parameters.floats(), state.floats());
        there.put(batch, 1, 1, 1e-4f);
        there.start();  // so that the run that does not count makes the graph
        row("training step", size, median_seconds(runs, counter, [&] {
              there.start();
              gpu->wait();
            }));
        continue;
      }
      const Arena trained = Arena::of_floats(model.parameter_floats, model.alignment);
      const Arena panels = Arena::of_floats(model.packed_floats, model.alignment);
      const Arena gradients = Arena::of_floats(model.parameter_floats, model.alignment);
      const Arena optimizer = Arena::of_floats(model.optimizer_floats(), model.alignment);
      const Arena scratch(model.train_scratch_bytes(model.images_at_once(size)), model.alignment);
      std::copy_n(parameters.floats(), model.parameter_floats, trained.floats());
      check(model, model.pack(trained.floats(), panels.floats()));
      row("training step", size, median_seconds(runs, counter, [&] {
            float loss = 0;
            check(model, model.train_step(trained.floats(), panels.floats(), gradients.floats(), optimizer.floats(),
                                          batch, outputs.floats(), &loss, scratch.data()));
          }));
    }
  return table;
}

}  // namespace tessera::runtime
