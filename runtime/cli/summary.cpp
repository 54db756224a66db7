#include "runtime/cli/summary.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/page.hpp"
#include "runtime/ranges.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;

struct SummaryOptions {
  std::filesystem::path page, times;
  std::string architecture;
  std::int64_t predicted_batch;
  std::int64_t ranks = 0, parts = 0;
  std::string network;
};

int run_summary(const CommandContext& context, const SummaryOptions& options) {
  const Model& model = context.model;
  if (!options.architecture.empty() && !model.predict)
    fail("this program was emitted without CUDA kernels: there is nothing to predict (CUDA in tessera_add_model)");
  if (!options.page.empty()) {
    spare_models(options.page, Output::other, {options.times});
    write_file(options.page, page_of(model, options.times));
    std::cout << options.page.string() << " shows the model\n";
    return 0;
  }
  const std::string predicted =
      options.architecture.empty() ? "" : "\n" + model.predict(options.architecture, options.predicted_batch);
  std::string ranked;
  if (options.ranks > 0) {
    const std::int64_t parts = options.parts > 0 ? options.parts : std::max(context.recipe.accumulate, options.ranks);
    ranked = ranks_text(model, context.recipe, static_cast<int>(options.ranks), parts, options.network);
  }
  std::cout << summary_text(model, context.recipe) << ranked << predicted;
  return 0;
}

}  // namespace

Subcommand add_summary(CLI::App& app, CommandContext& context) {
  const Model& model = context.model;
  const auto options = std::make_shared<SummaryOptions>();
  options->predicted_batch = context.recipe.batch;
  CLI::App* command = app.add_subcommand("summary", "Shapes, parameters and memory");
  command
      ->add_option("--html", options->page,
                   "Draw what was declared and what became of it into this file: graph, kernels, memory plan, sources")
      ->type_name("FILE");
  command
      ->add_option("--times", options->times,
                   "With the time of each kernel that bench --kernels --to FILE has measured")
      ->type_name("FILE")
      ->needs("--html");
  CLI::Option* predict_for =
      command
          ->add_option("--device", options->architecture,
                       "And what each CUDA kernel should take on a GPU: A100 (sm_80), H200 (sm_90a) or H100")
          ->type_name("ARCH");
  command->add_option("--batch", options->predicted_batch, "With so many images")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1'000'000))
      ->type_name("N")
      ->needs(predict_for);

  if (model.ranks && model.has_loss()) {
    CLI::Option* const of_ranks =
        command->add_option("--ranks", options->ranks, "And what so many ranks send in a step, and take")
            ->check(in<std::int64_t>(1, most_ranks))
            ->type_name("N");
    command
        ->add_option("--accumulate", options->parts,
                     "With so many parts of a step (default: the recipe's, or one a rank)")
        ->check(in<std::int64_t>(1, most_batch))
        ->type_name("N")
        ->needs(of_ranks);
    command
        ->add_option("--network", options->network,
                     "And how long the exchange of a step takes over 100GbE, say, or 400IB, on paper")
        ->type_name("NAME")
        ->needs(of_ranks);
  }
  command->footer(examples(model, {"summary", "summary --html model.html"}));
  return {command, [&context, options](const Gpu*) { return run_summary(context, *options); }};
}

}  // namespace tessera::runtime
