#include "runtime/cli/eval.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/confusion.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/file.hpp"
#include "runtime/inference.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

struct EvalOptions {
  std::optional<std::filesystem::path> data;
  std::optional<std::int64_t> digits, limit;
  bool on_training_images = false;
  std::filesystem::path confusion, labels;
};

/// What a rank has to know of a file of parameters, from the one that has read it.
void share_loaded(const Communicator& ranks, const Model& model, Loaded& loaded, float* parameters) {
  if (ranks.alone()) return;
  const std::string state =
      ranks.broadcast(ranks.leads() && loaded.state ? packed_state(model, *loaded.state) : std::string());
  if (!ranks.leads() && !state.empty()) loaded.state = unpacked_state(state);
  bool used = loaded.usage.has_value();
  ranks.broadcast(&used, sizeof used);
  if (used && !loaded.usage) loaded.usage.emplace();
  if (used) ranks.broadcast(&loaded.usage->input, sizeof loaded.usage->input);
  ranks.broadcast(parameters, 4 * model.parameter_floats);
}

int run_eval(const CommandContext& context, const EvalOptions& options, const Gpu* gpu, const Communicator& ranks) {
  const Model& model = context.model;
  demand_classes(model);
  std::optional<Arena> parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  Loaded loaded;
  ranks.agree([&] {
    if (!ranks.leads()) return;
    if (!options.confusion.empty()) spare_models(options.confusion, Output::other, {options.labels});
    loaded = load_parameters(context.parameters.file(), model, parameters->floats());
  });
  share_loaded(ranks, model, loaded, parameters->floats());
  // What the model was trained on is what it is asked about, unless the command line says otherwise.
  DataChoice choice = loaded.state ? loaded.state->data : DataChoice{};
  choice.folder = options.data.value_or(choice.folder);
  choice.digits = options.digits.value_or(choice.digits);
  choice.limit = options.limit.value_or(choice.limit);
  Recipe recipe = context.recipe;
  if (loaded.usage) recipe.input = loaded.usage->input;
  Dataset data;
  ranks.agree([&] {
    data = load(choice, options.on_training_images ? Split::train : Split::test, model, recipe.input);
    check_fit(model, data);
    if (!options.labels.empty()) data.names = read_labels(options.labels, model.classes);
  });
  ranks.demand_same(text(data.fingerprint()), "has other images");
  const Inference inference(model, parameters->floats(), recipe.batch, gpu);
  if (!inference.reads_parameters()) parameters.reset();
  const Evaluation evaluation = evaluate(model, recipe, inference, data, recipe.batch, ranks);
  ranks.agree([&] {
    if (!std::isfinite(evaluation.loss))
      fail("the loss of ", model.name, " is not a number: these parameters cannot be used");
  });
  std::cout << evaluation_table(model, data, evaluation);
  if (options.confusion.empty()) return 0;
  ranks.agree([&] {
    if (ranks.leads())
      write_file(options.confusion, confusion_svg(confusion(data, evaluation),
                                                  text(model.name, ": ", fixed(100 * evaluation.accuracy(), 2), "% of ",
                                                       grouped(data.size()), " images right")));
  });
  std::cout << "\nthe confusion matrix is in " << options.confusion.string() << '\n';
  return 0;
}

}  // namespace

Subcommand add_eval(CLI::App& app, CommandContext& context, const Communicator& ranks) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", text(context.trains ? "Loss and accuracy" : "Accuracy",
                                                      " on the test images, in all and for each class"));
  add_checkpoint_options(command, context.parameters);
  add_data_options(command, options->data, options->digits, options->limit);
  command->add_flag("--on-training-images", options->on_training_images, "Use the training images instead");
  command->add_option("--confusion", options->confusion, "Draw the confusion matrix into this SVG file")
      ->type_name("FILE");
  add_labels_option(command, options->labels);
  add_timeout_option(command, context);
  add_device_option(command, context.device);
  command->footer(
      text(threads_too, examples(context.model, {"eval --out run", "eval --out run --confusion confusion.svg"})));
  return {command, [&context, &ranks, options](const Gpu* gpu) { return run_eval(context, *options, gpu, ranks); },
          true};
}

}  // namespace tessera::runtime
