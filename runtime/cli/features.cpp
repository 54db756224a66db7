#include "runtime/cli/features.hpp"

#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/arena.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/embed.hpp"
#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/patch_components.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/similar.hpp"

namespace tessera::runtime {
namespace {

constexpr const char* picture_files = "PNG, JPEG, BMP, PGM or PPM pictures of any size";

/// The model with the parameters that a command names, ready to embed.
struct Embedder {
  Preprocessing input;
  Origin origin;
  std::optional<Inference> inference;

  Embedder(const CommandContext& context, const Gpu* gpu)
      : parameters_(Arena::of_floats(context.model.parameter_floats, context.model.alignment)) {
    const Model& model = context.model;
    input = load_for_use(context.parameters.file(), model, context.recipe, parameters_->floats()).input;
    origin = origin_of(model, parameters_->floats(), input);
    inference.emplace(model, parameters_->floats(), embedded_at_once, gpu);
    if (!inference->reads_parameters()) parameters_.reset();
  }

 private:
  std::optional<Arena> parameters_;
};

/// "1 picture", "1,200 pictures"
std::string pictures(std::int64_t count) { return text(grouped(count), count == 1 ? " picture" : " pictures"); }

void must_end_in(const std::filesystem::path& path, std::initializer_list<const char*> kinds) {
  std::string either;
  for (const char* const kind : kinds) {
    if (path.extension() == kind) return;
    either += text(either.empty() ? "" : " or ", kind);
  }
  fail(path.string(), " names no such picture: it has to end in ", either);
}

struct FeatureOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path data, output = "features.safetensors";
  std::int64_t limit = 0;
  bool test_images = false, invert = false;

  std::filesystem::path query, index, sheet;
  std::int64_t top = 10;
  bool json = false;

  std::filesystem::path test, head = "head.safetensors";

  std::filesystem::path picture = "components.svg";
  std::int64_t clusters = 6;
};

int run_embed(const CommandContext& context, const FeatureOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  check_place(options.output, options.data.empty() ? options.files : std::vector{options.data});
  const Embedder embedder(context, gpu);
  PictureList list;
  if (options.data.empty()) {
    list = pictures_of_files(model, options.files);
  } else {
    DataChoice choice;
    choice.folder = options.data;
    choice.limit = options.limit;
    list =
        pictures_of_data(model, std::make_shared<Dataset>(load(choice, options.test_images ? Split::test : Split::train,
                                                               model, embedder.input)));
  }
  Features features = embed(model, *embedder.inference, embedder.input, list, options.invert);
  features.data = options.data;
  features.split = options.test_images ? Split::test : Split::train;
  write_features(options.output, features, embedder.origin);
  std::cout << options.output.string() << ": " << pictures(features.size()) << ", " << features.width
            << " features each\n";
  return 0;
}

int run_similar(const CommandContext& context, const FeatureOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  if (!options.sheet.empty()) {
    must_end_in(options.sheet, {".html"});
    spare_models(options.sheet, Output::other, {options.query});
  }
  const Embedder embedder(context, gpu);
  const Features known = read_features(options.index, model, embedder.origin);
  Image read;
  const Features asked = embed(model, *embedder.inference, embedder.input, pictures_of_files(model, {options.query}),
                               options.invert, [&](std::int64_t, const Image& image, auto) { read = image; });
  if (asked.size() != 1) fail(options.query.string(), " is a folder of ", asked.size(), " pictures: similar takes one");
  if (!cosine(asked.row(0), asked.row(0)))
    fail("the features of ", options.query.string(), " are all zero: they have no direction, and nothing is like them");
  const std::vector<Neighbour> found = neighbours(known, asked.row(0), options.top);
  if (options.json)
    std::cout << neighbour_json(options.query.string(), known, found);
  else
    std::cout << neighbour_table(known, found);
  if (options.sheet.empty()) return 0;
  write_file(options.sheet, contact_sheet(text(model.name, ": ", without_controls(options.query.filename().string())),
                                          read, known, found, pictures_of_features(model, known, embedder.input)));
  if (!options.json) std::cout << "\nthe contact sheet is in " << options.sheet.string() << '\n';
  return 0;
}

int run_probe(const CommandContext& context, const FeatureOptions& options) {
  const Model& model = context.model;
  check_place(options.head, {options.index, options.test});
  std::optional<Arena> arena = Arena::of_floats(model.parameter_floats, model.alignment);
  const Preprocessing input = load_for_use(context.parameters.file(), model, context.recipe, arena->floats()).input;
  const Origin origin = origin_of(model, arena->floats(), input);
  arena.reset();
  std::vector<std::string> classes;
  const Labelled data = labelled(read_features(options.index, model, origin), classes);
  std::optional<Labelled> tests;
  if (!options.test.empty()) tests = labelled(read_features(options.test, model, origin), classes);
  const Probe fitted = probe(data, classes);
  std::cout << pictures(data.size()) << " of " << classes.size() << " classes, " << data.width
            << " features each; fitted to " << grouped(fitted.fitted) << ", held out " << grouped(fitted.held_out)
            << "\n\n      L2  held-out accuracy  held-out loss\n";
  for (const Trial& trial : fitted.trials)
    std::cout << padded(shortest(trial.l2), 8) << padded(fixed(100 * trial.held_out.accuracy(), 2), 18) << "%"
              << padded(fixed(trial.held_out.loss, 4), 15) << (trial.l2 == fitted.l2 ? "  chosen" : "") << '\n';
  const auto tell = [&](const char* of, const HeadScore& s) {
    std::cout << of << " accuracy " << fixed(100 * s.accuracy(), 2) << "% (" << grouped(s.right) << " of "
              << grouped(s.size) << "), loss " << fixed(s.loss, 4) << '\n';
  };
  std::cout << '\n';
  tell("all fitted again: training", score(fitted.head, data));
  if (tests) tell("test", score(fitted.head, *tests));
  write_head(options.head, fitted.head, model, origin, input);
  std::cout << options.head.string() << ": the fitted head; predict --head " << options.head.string() << " uses it\n";
  return 0;
}

int run_components(const CommandContext& context, const FeatureOptions& options, const Gpu* gpu) {
  const Model& model = context.model;
  must_end_in(options.picture, {".svg", ".png"});
  spare_models(options.picture, Output::other, options.files);
  const Grid& grid = model.patches;
  if (grid == Grid{} || model.embedding.tokens < grid.rows * grid.columns)
    fail(model.name, " has no tokens of patches: there are no components to draw");
  const Embedder embedder(context, gpu);
  std::vector<Image> read;
  std::vector<std::vector<float>> tokens;
  embed(model, *embedder.inference, embedder.input, pictures_of_files(model, options.files), options.invert,
        [&](std::int64_t, const Image& image, std::span<const float> of) {
          read.push_back(image);
          tokens.emplace_back(of.begin(), of.end());
        });
  const std::int64_t width = model.embedding.width;
  const std::vector<PatchDrawing> drawings{{"principal components", patch_colours(tokens, width, grid)},
                                           {"clusters", cluster_colours(tokens, width, grid, options.clusters)}};
  if (options.picture.extension() == ".svg") {
    const std::string shown =
        options.files.size() == 1 ? without_controls(options.files[0].filename().string()) : pictures(std::ssize(read));
    write_file(options.picture, components_svg(read, drawings, grid, text(model.name, ": ", shown)));
  } else {
    const Bytes png = components_png(read, drawings, grid);
    write_file(options.picture, std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  }
  std::cout << options.picture.string() << ": the patches of " << pictures(std::ssize(read))
            << " in the colours of their first three principal components and of " << options.clusters << " clusters\n";
  return 0;
}

/// similar and probe, for features that are a row.
void add_comparisons(CLI::App& app, CommandContext& context, const std::shared_ptr<FeatureOptions>& options,
                     std::vector<Subcommand>& commands) {
  const Model& model = context.model;
  const auto index_option = [&](CLI::App* command) {
    command->add_option("--index", options->index, "Features that embed has written")->required()->type_name("FILE");
  };

  CLI::App* const similar =
      app.add_subcommand("similar", "Find the pictures whose features are nearest to another picture's");
  similar->add_option("QUERY", options->query, "PNG, JPEG, BMP, PGM or PPM picture of any size")
      ->required()
      ->type_name("");
  index_option(similar);
  similar->add_option("--top", options->top, "How many to tell")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1000))
      ->type_name("K");
  similar->add_flag("--json", options->json,
                    "Answer in JSON: an object with the query and its neighbours, the nearest first");
  similar->add_option("-o,--sheet", options->sheet, "Draw the query and its neighbours into this HTML file")
      ->type_name("FILE");
  similar->add_flag("--invert", options->invert, swap_light);
  add_checkpoint_options(similar, context.parameters);
  add_device_option(similar, context.device);
  similar->footer(text("Nearest is what has the largest cosine of the angle between features, 1 at most. ", threads_too,
                       examples(model, {"similar photo.jpg --index features.safetensors",
                                        "similar photo.jpg --index features.safetensors --top 24 -o sheet.html"})));

  CLI::App* const probe = app.add_subcommand("probe", "Fit a head for classes of your own to features");
  index_option(probe);
  probe->add_option("--test", options->test, "Features to tell the accuracy on")->type_name("FILE");
  probe->add_option("-o,--head", options->head, "The safetensors file to write")
      ->capture_default_str()
      ->type_name("FILE");
  add_checkpoint_options(probe, context.parameters);
  probe->footer(text(
      "A picture's class is the name of the folder that it lies in. The head is a multinomial logistic regression;\n"
      "how much its weights count (L2) is chosen by the last of each five pictures of a class. ",
      threads_too,
      examples(model,
               {"embed --data flowers -o train.safetensors", "embed --data flowers --test-images -o test.safetensors",
                "probe --index train.safetensors --test test.safetensors -o head.safetensors",
                "predict --head head.safetensors photo.jpg"})));

  commands.push_back({similar, [&context, options](const Gpu* gpu) { return run_similar(context, *options, gpu); }});
  commands.push_back({probe, [&context, options](const Gpu*) { return run_probe(context, *options); }});
}

}  // namespace

std::vector<Subcommand> add_features(CLI::App& app, CommandContext& context) {
  const Model& model = context.model;
  const auto options = std::make_shared<FeatureOptions>();

  CLI::App* const embed =
      app.add_subcommand("embed", "Write the features of pictures: what the head reads, or a model without one gives");
  CLI::Option* const files =
      embed->add_option("FILE", options->files, text(picture_files, ", and folders of them"))->type_name("");
  CLI::Option* const data =
      embed
          ->add_option_function<std::string>(
              "--data",
              [options](const std::string& folder) { options->data = std::filesystem::weakly_canonical(folder); },
              "The images of a data set in FILE's place: MNIST's, CIFAR-10's, or folders "
              "train/CLASS and test/CLASS")
          ->type_name("DIR")
          ->excludes(files);
  embed->add_flag("--test-images", options->test_images, "Of the data set the test images, not the training images")
      ->needs(data);
  embed->add_option("--limit", options->limit, "Of the data set only the first N images")
      ->check(in<std::int64_t>(1, most_images))
      ->type_name("N")
      ->needs(data);
  embed->callback([files, data] {
    if (files->empty() && data->empty()) throw CLI::RequiredError("FILE or --data");
  });
  embed->add_option("-o,--output", options->output, "The safetensors file to write")
      ->capture_default_str()
      ->type_name("FILE");
  embed->add_flag("--invert", options->invert, swap_light);
  add_checkpoint_options(embed, context.parameters);
  add_device_option(embed, context.device);
  embed->footer(text(
      "The file has a tensor features [pictures, ",
      model.embedding.layers
          ? text(model.embedding.layers, " layers, ", model.embedding.tokens, ", ", model.embedding.width)
          : text(model.embedding.features),
      "]; its metadata have the pictures' names, and what tells\nthe model, its parameters and the preprocessing. ",
      threads_too,
      examples(model, {"embed photos/*.jpg -o features.safetensors", "embed --data flowers -o train.safetensors"})));

  std::vector<Subcommand> commands{
      {embed, [&context, options](const Gpu* gpu) { return run_embed(context, *options, gpu); }}};
  if (model.embedding.layers == 0) add_comparisons(app, context, options, commands);
  if (model.embedding.tokens == 0 || model.patches == Grid{}) return commands;
  CLI::App* const components = app.add_subcommand(
      "components", "Draw what the model tells apart within pictures: principal components and clusters");
  components->add_option("FILE", options->files, text(picture_files, ", and folders of them"))
      ->required()
      ->type_name("");
  components->add_option("-o,--picture", options->picture, "What to draw into: .svg with titles, or .png without")
      ->capture_default_str()
      ->type_name("FILE");
  components->add_option("--clusters", options->clusters, "How many groups of alike patches k-means makes")
      ->capture_default_str()
      ->check(in<std::int64_t>(2, most_clusters))
      ->type_name("K");
  components->add_flag("--invert", options->invert, swap_light);
  add_checkpoint_options(components, context.parameters);
  add_device_option(components, context.device);
  components->footer(text("Pictures of alike things have the same colours for the same parts. ", threads_too,
                          examples(model, {"components photo.jpg -o components.svg", "components cats/ -o cats.png"})));
  commands.push_back(
      {components, [&context, options](const Gpu* gpu) { return run_components(context, *options, gpu); }});
  return commands;
}

std::optional<LinearHead> head_of(const std::filesystem::path& path, const Model& model, const float* parameters,
                                  Usage& usage) {
  if (path.empty()) return std::nullopt;
  LinearHead head = read_head(path, model, origin_of(model, parameters, usage.input));
  usage.classes = head.classes;
  return head;
}

std::vector<float> probabilities(const LinearHead& head, const Inference& inference, const float* image) {
  Inference::Embedded embedded;
  inference.embed(image, 1, embedded);
  check_finite(embedded.features, "the features of the picture");
  return head.probabilities(embedded.features);
}

}  // namespace tessera::runtime
