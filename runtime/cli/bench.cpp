#include "runtime/cli/bench.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/numbers.hpp"
#include "runtime/ranges.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/timing.hpp"

namespace tessera::runtime {
namespace {

struct BenchOptions {
  std::vector<std::int64_t> batches{1, 8, 32};
  std::int64_t runs = 10;
  bool kernels = false;
  double seconds = 4;
  std::filesystem::path to;  ///< of the kernels' times; empty: they are shown alone
};

int run_bench(const CommandContext& context, const BenchOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  if (!options.kernels) {
    std::cout << timing_table(model, context.recipe, options.batches, options.runs, gpu);
    return 0;
  }
  if (gpu) fail("bench --kernels measures on the CPU: on a GPU, Nsight Systems shows its kernels by their names");
  if (!options.to.empty()) spare_models(options.to, Output::other);
  const KernelTimes times = measure_kernels(model, options.batches.back(), options.seconds);
  std::cout << kernel_table(times);
  if (options.to.empty()) return 0;
  write_file(options.to, kernel_json(times, model));
  std::cout << '\n'
            << options.to.string() << " holds these times: summary --html FILE --times " << options.to.string()
            << " shows them beside the kernels\n";
  return 0;
}

}  // namespace

Subcommand add_bench(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App* command =
      app.add_subcommand("bench", text("Time the forward pass", context.trains ? " and the training step" : ""));
  command->add_option("--batch", options->batches, "Batch sizes")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, most_batch))
      ->type_name("N");
  command->add_option("--runs", options->runs, "Runs of each, of which the median is told, after one to warm up")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1'000'000))
      ->type_name("N");
  CLI::Option* by_kernels =
      command->add_flag("--kernels", options->kernels,
                        "How long each kernel takes, at the last batch size, beside its share of the FLOPs");
  command->add_option("--seconds", options->seconds, "Look so long at each of forward pass and training step")
      ->capture_default_str()
      ->check(in<double>(0.01, 100))
      ->type_name("S")
      ->needs(by_kernels);
  command->add_option("--to", options->to, "Leave the kernels' times in this file, for summary --html")
      ->type_name("FILE")
      ->needs(by_kernels);
  add_device_option(command, context.device);
  command->footer(text(threads_too, examples(context.model, {"bench --batch 1 64", "bench --kernels --batch 64"})));
  return {command, [&context, options](const Gpu* gpu) { return run_bench(context, *options, gpu); }};
}

}  // namespace tessera::runtime
