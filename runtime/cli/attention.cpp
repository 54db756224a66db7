#include "runtime/cli/attention.hpp"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/attention.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/cli/picture_file.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/inference.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/ranges.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

struct AttentionOptions {
  std::filesystem::path file, picture = "attention.svg", labels;
  std::optional<std::int64_t> test_image;  ///< in the file's place
  bool invert = false;
};

int run_attention(const CommandContext& context, const AttentionOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  const std::string kind = options.picture.extension().string();
  if (kind != ".png" && kind != ".svg")
    fail(options.picture.string(), " names no picture: it has to end in .png or .svg");
  spare_models(options.picture, Output::other, {options.file, options.labels});
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  const Loaded loaded = load_parameters(context.parameters.file(), model, parameters.floats());
  Usage usage = loaded.usage.value_or(Usage{context.recipe.input, {}});
  if (!options.labels.empty()) usage.classes = read_labels(options.labels, model.classes);
  const Preprocessing& preprocessing = usage.input;
  std::string shown = without_controls(options.file.filename().string());
  Image photo;
  if (options.test_image) {
    const Dataset tests = load(loaded.state ? loaded.state->data : DataChoice{}, Split::test, model, preprocessing);
    check_fit(model, tests);
    const std::int64_t index = *options.test_image;
    if (index >= tests.size())
      fail("there is no test image ", index, ": ", tests.source, " have ", grouped(tests.size()), ", from 0");
    const std::span<const std::uint8_t> pixels = tests.image(index);
    photo = {tests.channels, tests.height, tests.width, Bytes(pixels.begin(), pixels.end())};
    if (options.invert) invert(photo);
    shown = text("test image ", index, ", which is ", tests.called(tests.labels[static_cast<std::size_t>(index)]));
  } else {
    const Pictures images = read_images(model, options.file);
    if (images.size() != 1)
      fail(options.file.string(), " holds ", images.size(), " pictures: attention is drawn for one");
    photo = prepared(model, preprocessing, images.at(0), options.invert);
  }
  const Arena input = Arena::of_floats(static_cast<std::int64_t>(photo.pixels.size()), model.alignment);
  normalize(photo, preprocessing, input.floats());
  const std::vector<PatchMap> maps = attention(model, parameters.floats(), input.floats(), gpu);
  if (kind == ".svg") {
    const Arena outputs = Arena::of_floats(model.classes, model.alignment);
    Inference(model, parameters.floats(), 1, gpu).forward(input.floats(), 1, outputs.floats());
    const std::vector<float> sure = probabilities(model, {outputs.floats(), static_cast<std::size_t>(model.classes)});
    write_file(options.picture, attention_svg(photo, maps, model.patches, text(model.name, ": ", shown),
                                              model.has_classes()          ? answer_text(sure, 3, usage.classes)
                                              : model.depth != Depth::none ? "none, the model gives depths"
                                                                           : "none, the model gives features"));
  } else {
    const Bytes png = attention_png(photo, maps, model.patches);
    write_file(options.picture, std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  }
  std::cout << options.picture.string() << ": the picture";
  for (const PatchMap& map : maps) std::cout << "; " << map.title;
  std::cout << '\n';
  return 0;
}

}  // namespace

Subcommand add_attention(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<AttentionOptions>();
  CLI::App* const command = app.add_subcommand("attention", "Draw what the model looks at over a picture");
  CLI::Option* const file =
      command->add_option("FILE", options->file, "PNG, JPEG, BMP or PGM picture of any size")->type_name("");
  CLI::Option* const test_image = command
                                      ->add_option("--test-image", options->test_image,
                                                   "A test image of the run, by its number from 0, in FILE's place")
                                      ->check(in<std::int64_t>(0, most_images - 1))
                                      ->type_name("N")
                                      ->excludes(file);
  command->callback([file, test_image] {
    if (file->empty() && test_image->empty()) throw CLI::RequiredError("FILE or --test-image");
  });
  add_checkpoint_options(command, context.parameters);
  command
      ->add_option("-o,--picture", options->picture,
                   "What to draw into: .svg with the answer and titles, or .png without")
      ->capture_default_str()
      ->type_name("FILE");
  add_labels_option(command, options->labels);
  command->add_flag("--invert", options->invert, swap_light);
  add_device_option(command, context.device);
  command->footer(text(threads_too, examples(context.model, {"attention --out run photo.jpg -o seen.svg"})));
  return {command, [&context, options](const Gpu* gpu) { return run_attention(context, *options, gpu); }};
}

}  // namespace tessera::runtime
