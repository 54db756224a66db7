#include "runtime/cli/predict.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/cli/features.hpp"
#include "runtime/cli/picture_file.hpp"
#include "runtime/inference.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/packed_parameters.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/ranges.hpp"
#include "runtime/report.hpp"

namespace tessera::runtime {
namespace {

struct PredictOptions {
  std::vector<std::filesystem::path> files;
  std::int64_t top = 3;
  bool invert = false;
  bool json = false;
  std::filesystem::path labels, head;
};

/// A model that is ready to answer.
struct Ready {
  Usage usage;
  std::optional<LinearHead> head;
  std::optional<PackedParameters> packed;  ///< of a run, for the CPU; a head is checked against the parameters
  std::optional<Arena> parameters;
  std::optional<Inference> inference;

  Ready(const CommandContext& context, const PredictOptions& options, const Gpu* gpu) {
    const Model& model = context.model;
    const std::filesystem::path file = context.parameters.file();
    if (!gpu && options.head.empty() && context.parameters.of_run()) packed.emplace(file, model);
    if (packed && packed->floats()) {
      usage = read_usage(file).value_or(Usage{context.recipe.input, {}});
      inference.emplace(Inference::of_packed(model, packed->floats(), 1));
      return;
    }
    parameters = Arena::of_floats(model.parameter_floats, model.alignment);
    std::ostringstream notes;
    usage = load_parameters(file, model, parameters->floats(), notes).usage.value_or(Usage{context.recipe.input, {}});
    std::cout << notes.str();
    if (!notes.str().empty()) packed.reset();  // what is said of the parameters is said each time
    head = head_of(options.head, model, parameters->floats(), usage);
    inference.emplace(model, parameters->floats(), 1, gpu);
    if (!inference->reads_parameters()) parameters.reset();
  }
};

int run_predict(const CommandContext& context, const PredictOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  if (options.head.empty()) demand_classes(model);
  Ready ready(context, options, gpu);
  const std::optional<LinearHead>& head = ready.head;
  const Inference& inference = *ready.inference;
  Usage& usage = ready.usage;
  if (!options.labels.empty())
    usage.classes = read_labels(options.labels, head ? std::ssize(head->classes) : model.classes);
  const Arena outputs = Arena::of_floats(model.classes, model.alignment);
  const auto& shape = model.image_shape;
  const Arena input = Arena::of_floats(size_product({shape[0], shape[1], shape[2]}), model.alignment);
  const char* before = "[";
  for (const std::filesystem::path& path : options.files) {
    const Pictures images = read_images(model, path);
    for (std::int64_t i = 0; i < images.size(); ++i) {
      const Image image = prepared(model, usage.input, images.at(i), options.invert);
      normalize(image, usage.input, input.floats());
      const std::vector<float> sure = head ? probabilities(*head, inference, input.floats()) : [&] {
        inference.forward(input.floats(), 1, outputs.floats());
        return probabilities(model, {outputs.floats(), static_cast<std::size_t>(model.classes)});
      }();
      const std::optional<std::int64_t> which = images.size() > 1 ? std::optional(i) : std::nullopt;
      if (options.json) {
        std::cout << std::exchange(before, ",\n ")
                  << prediction_json(path.string(), which, sure, options.top, usage.classes);
      } else {
        const std::string name = without_controls(path.string()) + (which ? text("[", i, "]") : "");
        std::cout << prediction_line(name, sure, options.top, usage.classes);
      }
    }
  }
  if (options.json) std::cout << (*before == '[' ? "[]\n" : "]\n");
  if (ready.packed && inference.packed()) {
    std::cout.flush();  // the answer waits for nothing
    ready.packed->keep(inference.packed());
  }
  return 0;
}

}  // namespace

Subcommand add_predict(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* command = app.add_subcommand("predict", "Tell the class of pictures");
  command
      ->add_option("FILE", options->files,
                   "PNG, JPEG, BMP or PGM pictures of any size, or IDX files of images (plain or .gz)")
      ->required()
      ->type_name("");
  add_checkpoint_options(command, context.parameters);
  command->add_option("--topk", options->top, "How many classes to show")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1000))
      ->type_name("K");
  command->add_flag("--invert", options->invert, swap_light);
  command->add_flag("--json", options->json,
                    "Answer in JSON: a list with an object for each picture, its classes the likeliest first");
  add_labels_option(command, options->labels);
  if (context.model.embed)
    command->add_option("--head", options->head, "A head that probe has fitted, in the place of the model's own")
        ->type_name("FILE");
  add_device_option(command, context.device);
  command->footer(
      text("Of a run, parameters of 4 MiB and more are left beside the checkpoint as the kernels read them\n"
           "(checkpoint.ISA.packed, which may be deleted), so that the next answer comes sooner.\n\n",
           threads_too,
           examples(context.model, {"predict --out run photo.jpg", "predict --out run --json --topk 5 a.png b.png"})));
  return {command, [&context, options](const Gpu* gpu) { return run_predict(context, *options, gpu); }};
}

}  // namespace tessera::runtime
