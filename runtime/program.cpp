#include "runtime/program.hpp"

#include <unistd.h>
#include <zlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/attention.hpp"
#include "runtime/command.hpp"
#include "runtime/communicator.hpp"
#include "runtime/confusion.hpp"
#include "runtime/error.hpp"
#include "runtime/exchange.hpp"
#include "runtime/feature_commands.hpp"
#include "runtime/file.hpp"
#include "runtime/gpu.hpp"
#include "runtime/gzip.hpp"
#include "runtime/idx.hpp"
#include "runtime/image.hpp"
#include "runtime/kernel_times.hpp"
#include "runtime/labels.hpp"
#include "runtime/numbers.hpp"
#include "runtime/onnx.hpp"
#include "runtime/packed_data.hpp"
#include "runtime/page.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/ranges.hpp"
#include "runtime/report.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/suggestion.hpp"
#include "runtime/timing.hpp"

namespace tessera::runtime {
namespace {

constexpr std::int64_t most_threads = 4096, most_ranks = 1'000'000;

void use_threads(std::int64_t threads) {
#ifdef _OPENMP
  if (threads > 0) omp_set_num_threads(static_cast<int>(threads));
  // OpenMP itself ends the program where it cannot hold so many.
  if (omp_get_max_threads() > most_threads)
    fail("OMP_NUM_THREADS asks for ", omp_get_max_threads(), " threads, more than the ", most_threads,
         " that can be used");
#else
  if (threads > 1) fail("this program was built without OpenMP: it runs on one thread, not on ", threads);
#endif
}

/// Any number of 64 bits: CLI11 takes -1 and 2^64 for one too.
const CLI::Validator seed(
    [](std::string& given) {
      std::uint64_t value = 0;
      const char* const end = given.data() + given.size();
      const auto [read, error] = std::from_chars(given.data(), end, value);
      return error == std::errc{} && read == end ? std::string()
                                                 : text(printable(given), " is not an integer from 0 to 2^64 - 1");
    },
    "");

struct EvalOptions : ParameterFile {
  std::optional<std::filesystem::path> data;
  std::optional<std::int64_t> digits, limit;
  bool on_training_images = false;
  std::filesystem::path confusion, labels;
};

struct PredictOptions {
  std::vector<std::filesystem::path> files;
  std::int64_t top = 3;
  bool invert = false;
  bool json = false;
  std::filesystem::path labels, head;
};

struct AttentionOptions {
  std::filesystem::path file, picture = "attention.svg", labels;
  std::optional<std::int64_t> test_image;  ///< in the file's place
  bool invert = false;
};

struct BenchOptions {
  std::vector<std::int64_t> batches{1, 8, 32};
  std::int64_t runs = 10;
  bool kernels = false;
  double seconds = 4;
  std::filesystem::path to;  ///< of the kernels' times; empty: they are shown alone
};

int bench_command(const Model& model, const Recipe& recipe, const BenchOptions& options, const Gpu* gpu) {
  if (!options.kernels) {
    std::cout << timing_table(model, recipe, options.batches, options.runs, gpu);
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

int evaluate_command(const Model& model, const Recipe& declared, const EvalOptions& options, const Gpu* gpu,
                     const Communicator& ranks) {
  std::optional<Arena> parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  Loaded loaded;
  ranks.agree([&] {
    if (!ranks.leads()) return;
    if (!options.confusion.empty()) spare_models(options.confusion, Output::other);
    loaded = load_parameters(options.file(), model, parameters->floats());
  });
  share_loaded(ranks, model, loaded, parameters->floats());
  // What the model was trained on is what it is asked about, unless the command line says otherwise.
  DataChoice choice = loaded.state ? loaded.state->data : DataChoice{};
  choice.folder = options.data.value_or(choice.folder);
  choice.digits = options.digits.value_or(choice.digits);
  choice.limit = options.limit.value_or(choice.limit);
  Recipe recipe = declared;
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

/// Pictures of one size.
struct Pictures {
  std::int64_t channels, height, width;
  Bytes pixels;

  std::int64_t image_size() const { return channels * height * width; }
  std::int64_t size() const { return static_cast<std::int64_t>(pixels.size()) / image_size(); }
  Image at(std::int64_t index) const {
    const auto first = pixels.begin() + index * image_size();
    return {channels, height, width, Bytes(first, first + image_size())};
  }
};

/// The pictures of a file: one, or those of an IDX file.
Pictures read_images(const Model& model, const std::filesystem::path& path) {
  const std::string where = path.string();
  const auto is_idx = [](std::span<const std::uint8_t> content) {
    return content.size() >= 4 && content[0] == 0 && content[1] == 0 && content[2] == 8 && content[3] == 3;
  };
  Bytes content = read_packed_file(
      path, longest_picture, [&](auto first) { return is_idx(first) ? idx_bytes(first, where) : longest_picture; });
  if (!is_idx(content)) {
    Image image = decode_image(content, model.image_shape[0], where);
    return {image.channels, image.height, image.width, std::move(image.pixels)};
  }
  if (model.image_shape[0] != 1)
    fail(where, " holds grey images, ", model.name, " reads ", model.image_shape[0], " channels");
  Idx file = parse_idx(std::move(content), where);
  return {1, file.shape[1], file.shape[2], std::move(file.data)};
}

/// The image as the model sees it, before it is normalised.
Image prepared(const Model& model, const Preprocessing& preprocessing, const Image& image, bool inverted) {
  Image result = prepared(image, preprocessing, model.image_shape[1], model.image_shape[2]);
  if (inverted) invert(result);
  return result;
}

int predict_command(const Model& model, const Recipe& recipe, const EvalOptions& from, const PredictOptions& options,
                    const Gpu* gpu) {
  std::optional<Arena> parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  Usage usage = load_for_use(from.file(), model, recipe, parameters->floats());
  const std::optional<LinearHead> head = head_of(options.head, model, parameters->floats(), usage);
  if (!options.labels.empty())
    usage.classes = read_labels(options.labels, head ? std::ssize(head->classes) : model.classes);
  const Inference inference(model, parameters->floats(), 1, gpu);
  if (!inference.reads_parameters()) parameters.reset();
  const Arena outputs = Arena::of_floats(model.classes, model.alignment);
  const auto& shape = model.image_shape;
  const Arena input = Arena::of_floats(size_product({shape[0], shape[1], shape[2]}), model.alignment);
  const char* before = "[";
  for (const std::filesystem::path& path : options.files) {
    const Pictures images = read_images(model, path);
    for (std::int64_t i = 0; i < images.size(); ++i) {
      const Image image = prepared(model, usage.input, images.at(i), options.invert);
      normalize(image.pixels, shape[0], usage.input, input.floats());
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
  return 0;
}

int attention_command(const Model& model, const Recipe& recipe, const EvalOptions& from,
                      const AttentionOptions& options, const Gpu* gpu) {
  const std::string kind = options.picture.extension().string();
  if (kind != ".png" && kind != ".svg")
    fail(options.picture.string(), " names no picture: it has to end in .png or .svg");
  spare_models(options.picture, Output::other);
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  const Loaded loaded = load_parameters(from.file(), model, parameters.floats());
  Usage usage = loaded.usage.value_or(Usage{recipe.input, {}});
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
  normalize(photo.pixels, photo.channels, preprocessing, input.floats());
  const std::vector<PatchMap> maps = attention(model, parameters.floats(), input.floats(), gpu);
  if (kind == ".svg") {
    const Arena outputs = Arena::of_floats(model.classes, model.alignment);
    Inference(model, parameters.floats(), 1, gpu).forward(input.floats(), 1, outputs.floats());
    const std::vector<float> sure = probabilities(model, {outputs.floats(), static_cast<std::size_t>(model.classes)});
    write_file(options.picture, attention_svg(photo, maps, model.patches, text(model.name, ": ", shown),
                                              model.outputs_are_features ? "none, the model gives features"
                                                                         : answer_text(sure, 3, usage.classes)));
  } else {
    const Bytes png = attention_png(photo, maps, model.patches);
    write_file(options.picture, std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
  }
  std::cout << options.picture.string() << ": the picture";
  for (const PatchMap& map : maps) std::cout << "; " << map.title;
  std::cout << '\n';
  return 0;
}

/// Also says that the text did not arrive: a full disk behind a redirection is otherwise silent.
int finished(int code) {
  if (!std::cout.flush()) fail("cannot write to standard output");
  return code;
}

void add_data_options(CLI::App* command, std::optional<std::filesystem::path>& data,
                      std::optional<std::int64_t>& digits, std::optional<std::int64_t>& limit) {
  command
      ->add_option_function<std::string>(
          "--data", [&data](const std::string& folder) { data = std::filesystem::weakly_canonical(folder); },
          "Folder of a data set: MNIST's four IDX files, CIFAR-10's .bin files (both plain or .gz), or folders "
          "train/CLASS "
          "and test/CLASS of PNG or JPEG pictures; or a file that pack has made (default: built-in digits)")
      ->type_name("DIR");
  command
      ->add_option("--digits", digits,
                   "How many built-in digits to draw for training, and a sixth as many for the test "
                   "(default: 12000)")
      ->check(in<std::int64_t>(1, most_digits))
      ->type_name("N");
  command->add_option("--limit", limit, "Use only the first N training and the first N test images")
      ->check(in<std::int64_t>(1, most_images))
      ->type_name("N");
}

struct ExchangeOptions {
  std::filesystem::path file;  ///< to write, or to read
  std::filesystem::path onnx;  ///< in the place of `file`
  std::string dtype = "f32";
  std::vector<std::string> skip;
};

int export_command(const Model& model, const Recipe& recipe, const EvalOptions& from, const ExchangeOptions& options) {
  const bool whole = !options.onnx.empty();
  const std::filesystem::path& to = whole ? options.onnx : options.file;
  spare_models(to, whole ? Output::other : Output::parameters);
  std::error_code unknown;
  if (std::filesystem::equivalent(to, from.file(), unknown))
    fail("cannot write ", to.string(), ": it is what the parameters are read from");
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  const Usage usage = load_for_use(from.file(), model, recipe, parameters.floats());
  if (whole) {
    export_onnx(to, model, parameters.floats(), usage);
    std::cout << to.string() << " holds the forward pass of " << model.name << " with the parameters of "
              << from.file().string() << std::endl;
    return 0;
  }
  const std::string dtype = options.dtype == "f32" ? "F32" : options.dtype == "f16" ? "F16" : "BF16";
  export_parameters(options.file, model, parameters.floats(), dtype, usage);
  std::cout << options.file.string() << " holds the parameters of " << from.file().string() << " as " << dtype
            << std::endl;
  return 0;
}

/// Any data set as one file, which is mapped into memory.
int pack_command(const Model& model, const Recipe& recipe, const DataChoice& choice, const std::filesystem::path& to) {
  if (!is_packed_data(to)) spare_models(to, Output::other);
  std::error_code unknown;
  if (std::filesystem::equivalent(to, choice.folder, unknown)) fail("cannot write ", to.string(), ": it is the data");
  const Room room = [&](std::int64_t bytes) {
    return room_on_disk(to.has_parent_path() ? to.parent_path() : ".", bytes);
  };
  const Dataset train = load(choice, Split::train, model, recipe.input, room);
  const Dataset test = load(choice, Split::test, model, recipe.input, room);
  check_fit(model, train);
  check_fit(model, test);
  write_packed_data(to, train, test);
  std::cout << to.string() << " holds " << grouped(train.size()) << " training and " << grouped(test.size())
            << " test images of " << train.source << std::endl;
  return 0;
}

CLI::Option* add_skip_option(CLI::App* command, std::vector<std::string>& skip) {
  return command
      ->add_option(
          "--skip", skip,
          "Leave these parameters at their starting values, and do not ask what the file has for them; * ends a "
          "part of a key: 'head.*'")
      ->expected(1)
      ->take_all()
      ->type_name("KEY");
}

/// The kernels take no notice of a size that they cannot read; a person should hear of it.
void check_second_cache() {
  const char* const given = std::getenv("TESSERA_SECOND_CACHE");
  if (!given || !*given) return;
  const char* const end = given + std::strlen(given);
  std::int64_t bytes = 0;
  if (const auto [read, error] = std::from_chars(given, end, bytes); error != std::errc{} || read != end || bytes < 1)
    fail(text("TESSERA_SECOND_CACHE=", given, " is not a number of bytes above 0"));
}

constexpr const char* what_a_run_leaves =
    "A training run keeps everything in one folder: checkpoint.safetensors (model, optimiser and place\n"
    "in the data), curve.csv, curve.svg, predictions.svg, report.txt and report.html, which holds it all. "
    "Ctrl-C saves and stops;\n"
    "train --resume goes on, with the same numbers as if nothing had happened.\n\n";

constexpr const char* environment =
    "Environment:\n"
    "  TESSERA_ISA=scalar|avx2|avx512   kernels to use instead of the best ones for this machine\n"
    "  TESSERA_SECOND_CACHE=BYTES       of a core, instead of what the system says\n\n";

/// What --help ends with.
std::string footer(const Model& model) {
  const bool looks = model.attention.layers > 0;
  std::string shown =
      model.has_loss()
          ? examples(model, {"train", "train --data mnist --epochs 10 --out run", "train --resume --out run"})
          : examples(model, {"import weights.safetensors --out run"});
  shown += model.outputs_are_features
               ? text("  ", model.name, " embed --out run photos -o features.safetensors\n  ", model.name,
                      " similar --out run photo.jpg --index features.safetensors\n")
               : text("  ", model.name, " eval --out run\n  ", model.name, " predict --out run --invert photo.jpg\n");
  if (looks) shown += text("  ", model.name, " attention --out run --invert photo.jpg -o seen.svg\n");
  return text("What a command takes: ", model.name, " COMMAND --help.\n\n",
              model.has_loss() ? what_a_run_leaves
                               : "The parameters come from training elsewhere: import makes a checkpoint of them.\n\n",
              environment, shown);
}

/// The names by which an option can be given on the command line.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// The sentence for a word that nobody knows: what is near it, or which command takes it.
std::string about_unknown(const CLI::App& app, const CLI::App* used, const std::vector<std::string>& extras) {
  const auto unknown =
      std::ranges::find_if(extras, [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); });
  const auto meant = [](const std::string& near) { return near.empty() ? "" : text("; did you mean ", near, "?"); };
  if (!used && (unknown == extras.end() || unknown != extras.begin())) {
    std::vector<std::string> names;
    for (const CLI::App* const command : commands) names.push_back(command->get_name());
    return text("there is no command ", printable(extras.front()), meant(nearest(extras.front(), names)));
  }
  if (unknown == extras.end()) return text(used->get_name(), " does not take ", printable(extras.front()));
  const std::string option = unknown->substr(0, unknown->find('='));
  std::vector<std::string> names = names_of(app);
  if (used) std::ranges::copy(names_of(*used), std::back_inserter(names));
  std::string takers;
  for (const CLI::App* const command : commands)
    if (std::ranges::count(names_of(*command), option)) takers += text(takers.empty() ? "" : ", ", command->get_name());
  const std::string who = used ? used->get_name() + " has no option " : "there is no option ";
  if (!takers.empty()) return text(who, printable(option), ", which belongs to ", takers);
  return text(who, printable(option), meant(nearest(option, names)));
}

/// Ranks that differ in what decides the bits cannot share a run.
void demand_equal_ranks(const Communicator& ranks, const Model& model, int argc, char** argv) {
  if (ranks.alone()) return;
  std::string program, arguments;
  ranks.agree([&] {
    const Bytes content = read_file("/proc/self/exe", std::uint64_t{1} << 34);
    char library[64] = "";  // with the functions that learning rates and starting values are made by
#ifdef _CS_GNU_LIBC_VERSION
    ::confstr(_CS_GNU_LIBC_VERSION, library, sizeof library);
#endif
    program = text("checksum ", crc32_z(0, content.data(), content.size()), ", ", library);
    for (int i = 1; i < argc; ++i) arguments += text(i > 1 ? " " : "", printable(argv[i]));
  });
  ranks.demand_same(program, "runs another program");
  ranks.demand_same(arguments, "was started with other arguments");
  ranks.agree_on_isa(model);
}

void add_timeout_option(CLI::App* command, const Model& model, double& seconds) {
  if (!model.ranks) return;
  command->add_option("--rank-timeout", seconds, "End where a rank has not answered for so many seconds")
      ->capture_default_str()
      ->check(in(0.1, 1e6))
      ->type_name("S");
}

int run(const Model& model, const Recipe& recipe, int (*train)(Session&), int argc, char** argv,
        const std::optional<Command>& more, Communicator& ranks) {
  demand_equal_ranks(ranks, model, argc, argv);
  check_second_cache();
  // A file that would grow past its limit is an error with a sentence, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(text(model.name, train ? ": trains, evaluates" : ": evaluates", " and applies the model."), model.name);
  app.require_subcommand(0, 1);
  app.footer(footer(model));
  std::int64_t threads = 0;
  app.add_option("--threads", threads, "Threads to use (default: all cores); results do not depend on it")
      ->check(in<std::int64_t>(1, most_threads))
      ->type_name("N");
  app.fallthrough();
  app.set_version_flag("--version", version_text(model), "Tell the versions of Tessera and of the declaration");
  std::string device = "cpu";

  const std::filesystem::path default_out = model.name + "_run";
  TrainOptions training;
  training.out = default_out;
  training.command = argv[0];
  CLI::App* train_app = app.add_subcommand("train", "Train the model");
  if (!train) train_app->group("");  // understood, but not among what --help lists
  add_data_options(train_app, training.data, training.digits, training.limit);
  train_app->add_option("--out", training.out, "Folder for everything the run writes")
      ->capture_default_str()
      ->type_name("DIR");
  CLI::Option* const resume =
      train_app->add_flag("--resume", training.resume,
                          "Go on with the run in --out, with its options; --data tells where its images have moved");
  bool overwrite = false;
  train_app
      ->add_flag("--overwrite", overwrite,
                 "Start another run where --out holds one; its checkpoint is kept as checkpoint.previous.safetensors")
      ->excludes(resume);
  train_app->add_flag("--isa-change", training.isa_change,
                      "Let --resume go on with another instruction set, whose last bits differ");
  train_app
      ->add_option("--epochs", training.epochs, text("Passes over the training images (default: ", recipe.epochs, ")"))
      ->check(in<std::int64_t>(0, most_epochs))
      ->type_name("N");
  train_app->add_option("--batch", training.batch, text("Images in a training step (default: ", recipe.batch, ")"))
      ->check(in<std::int64_t>(1, most_batch))
      ->type_name("N");
  double rank_timeout = 600;
  if (model.ranks)
    train_app
        ->add_option("--accumulate", training.accumulate,
                     text("Batches whose gradients are averaged for one step, the parts that ranks share (default: ",
                          recipe.accumulate, ")"))
        ->check(in<std::int64_t>(1, most_batch))
        ->type_name("N");
  add_timeout_option(train_app, model, rank_timeout);
  if (model.ranks)
    train_app->add_flag("--overlap", training.overlap,
                        "Let ranks exchange gradients while the rest of them is computed; the bits are the same");
  train_app->add_option("--lr", training.learning_rate, text("Learning rate (default: ", recipe.learning_rate, ")"))
      ->check(in(0.0, most_learning_rate))
      ->type_name("X");
  train_app
      ->add_option("--seed", training.seed,
                   text("Chooses the first parameters and the order of the images (default: ", recipe.seed, ")"))
      ->check(seed)
      ->type_name("N");
  train_app
      ->add_option("--checkpoint-every", training.checkpoint_every,
                   "Steps between checkpoints (default: every 20 seconds; and always after an epoch)")
      ->check(in<std::int64_t>(1, 1'000'000'000))
      ->type_name("N");

  CLI::Option* const init =
      train_app
          ->add_option(
              "--init", training.init,
              "Start from the parameters of this safetensors file (a checkpoint, or saved by PyTorch); a run that is "
              "resumed has its own")
          ->type_name("FILE");
  add_skip_option(train_app, training.skip)->needs(init);
  add_device_option(train_app, device);

  EvalOptions evaluation;
  evaluation.out = default_out;
  evaluation.shipped = shipped_parameters(model);
  CLI::App* eval_app = app.add_subcommand(
      "eval", text(train ? "Loss and accuracy" : "Accuracy", " on the test images, in all and for each class"));
  add_checkpoint_options(eval_app, evaluation);
  add_data_options(eval_app, evaluation.data, evaluation.digits, evaluation.limit);
  eval_app->add_flag("--on-training-images", evaluation.on_training_images, "Use the training images instead");
  eval_app->add_option("--confusion", evaluation.confusion, "Draw the confusion matrix into this SVG file")
      ->type_name("FILE");
  add_labels_option(eval_app, evaluation.labels);
  add_timeout_option(eval_app, model, rank_timeout);
  add_device_option(eval_app, device);

  PredictOptions prediction;
  CLI::App* predict_app = app.add_subcommand("predict", "Tell the class of pictures");
  predict_app
      ->add_option("FILE", prediction.files,
                   "PNG, JPEG, BMP or PGM pictures of any size, or IDX files of images (plain or .gz)")
      ->required();
  add_checkpoint_options(predict_app, evaluation);
  predict_app->add_option("--topk", prediction.top, "How many classes to show")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1000))
      ->type_name("K");
  predict_app->add_flag("--invert", prediction.invert, swap_light);
  predict_app->add_flag("--json", prediction.json,
                        "Answer in JSON: a list with an object for each picture, its classes the likeliest first");
  add_labels_option(predict_app, prediction.labels);
  if (model.embed)
    predict_app->add_option("--head", prediction.head, "A head that probe has fitted, in the place of the model's own")
        ->type_name("FILE");
  add_device_option(predict_app, device);

  AttentionOptions look;
  CLI::App* attention_app = nullptr;
  if (model.attention.layers > 0) {
    attention_app = app.add_subcommand("attention", "Draw what the model looks at over a picture");
    CLI::Option* const file = attention_app->add_option("FILE", look.file, "PNG, JPEG, BMP or PGM picture of any size");
    CLI::Option* const test_image = attention_app
                                        ->add_option("--test-image", look.test_image,
                                                     "A test image of the run, by its number from 0, in FILE's place")
                                        ->check(in<std::int64_t>(0, most_images - 1))
                                        ->type_name("N")
                                        ->excludes(file);
    attention_app->callback([file, test_image] {
      if (file->empty() && test_image->empty()) throw CLI::RequiredError("FILE or --test-image");
    });
    add_checkpoint_options(attention_app, evaluation);
    attention_app
        ->add_option("-o,--picture", look.picture,
                     "What to draw into: .svg with the answer and titles, or .png without")
        ->capture_default_str()
        ->type_name("FILE");
    add_labels_option(attention_app, look.labels);
    attention_app->add_flag("--invert", look.invert, swap_light);
    add_device_option(attention_app, device);
  }

  BenchOptions speed;
  CLI::App* bench_app =
      app.add_subcommand("bench", text("Time the forward pass", train ? " and the training step" : ""));
  bench_app->add_option("--batch", speed.batches, "Batch sizes")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, most_batch))
      ->type_name("N");
  bench_app->add_option("--runs", speed.runs, "Runs of each, of which the median is told, after one to warm up")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1'000'000))
      ->type_name("N");
  CLI::Option* by_kernels = bench_app->add_flag(
      "--kernels", speed.kernels, "How long each kernel takes, at the last batch size, beside its share of the FLOPs");
  bench_app->add_option("--seconds", speed.seconds, "Look so long at each of forward pass and training step")
      ->capture_default_str()
      ->check(in<double>(0.01, 100))
      ->type_name("S")
      ->needs(by_kernels);
  bench_app->add_option("--to", speed.to, "Leave the kernels' times in this file, for summary --html")
      ->type_name("FILE")
      ->needs(by_kernels);
  add_device_option(bench_app, device);

  ExchangeOptions exported, imported;
  CLI::App* export_app = app.add_subcommand(
      "export",
      "Write the parameters alone, with PyTorch's keys and layouts, as safetensors, or the model as an ONNX file");
  add_checkpoint_options(export_app, evaluation);
  CLI::Option* to = export_app->add_option("-o,--to", exported.file, "The file of parameters to write");
  CLI::Option* onnx = export_app->add_option(
      "--onnx", exported.onnx, "The ONNX file to write: the forward pass in single precision, with its parameters");
  to->type_name("FILE");
  onnx->type_name("FILE")->excludes(to);
  export_app->add_option("--dtype", exported.dtype, "Type of the numbers: f32, f16 or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"f32", "f16", "bf16"}).description(""))
      ->type_name("TYPE")
      ->excludes(onnx);
  export_app->callback([to, onnx] {
    if (to->empty() && onnx->empty()) throw CLI::RequiredError("--to FILE or --onnx FILE");
  });

  CLI::App* import_app = app.add_subcommand(
      "import", "Make a checkpoint of a safetensors file with the model's keys, as PyTorch has them");
  import_app->add_option("FILE", imported.file, "Parameters in F32, F16, BF16 or F64")->required();
  import_app->add_option("--out", evaluation.out, "Folder for the checkpoint")->capture_default_str()->type_name("DIR");
  add_skip_option(import_app, imported.skip);

  FeatureCommands features(app, model, recipe, evaluation, device);
  std::optional<std::filesystem::path> packed_from;
  std::optional<std::int64_t> packed_digits, packed_limit;
  std::filesystem::path packed_to;
  CLI::App* pack_app = app.add_subcommand(
      "pack", text("Write a data set into one file, which ", train ? "train and eval map" : "eval maps",
                   " instead of reading it: for data of any size"));
  add_data_options(pack_app, packed_from, packed_digits, packed_limit);
  pack_app->add_option("-o,--to", packed_to, "The file to write")->required()->type_name("FILE");

  std::string architecture;
  std::int64_t predicted_batch = recipe.batch;
  CLI::App* summary_app = app.add_subcommand("summary", "Shapes, parameters and memory");
  std::filesystem::path page;
  summary_app
      ->add_option("--html", page,
                   "Draw what was declared and what became of it into this file: graph, kernels, memory plan, sources")
      ->type_name("FILE");
  std::filesystem::path times;
  summary_app->add_option("--times", times, "With the time of each kernel that bench --kernels --to FILE has measured")
      ->type_name("FILE")
      ->needs("--html");
  CLI::Option* predict_for =
      summary_app
          ->add_option("--device", architecture,
                       "And what each CUDA kernel should take on a GPU: A100 (sm_80), H200 (sm_90a) or H100")
          ->type_name("ARCH");
  summary_app->add_option("--batch", predicted_batch, "With so many images")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1'000'000))
      ->type_name("N")
      ->needs(predict_for);

  CLI::App* more_app = nullptr;
  if (more) {
    more_app = app.add_subcommand(more->name, more->description);
    add_checkpoint_options(more_app, evaluation);
    more->add_options(*more_app);
    add_labels_option(more_app, prediction.labels);
    add_device_option(more_app, device);
  }

  std::int64_t summary_ranks = 0, summary_parts = 0;
  std::string network;
  if (model.ranks && model.has_loss()) {
    CLI::Option* const of_ranks =
        summary_app->add_option("--ranks", summary_ranks, "And what so many ranks send in a step, and take")
            ->check(in<std::int64_t>(1, most_ranks))
            ->type_name("N");
    summary_app
        ->add_option("--accumulate", summary_parts,
                     "With so many parts of a step (default: the recipe's, or one a rank)")
        ->check(in<std::int64_t>(1, most_batch))
        ->type_name("N")
        ->needs(of_ranks);
    summary_app
        ->add_option("--network", network,
                     "And how long the exchange of a step takes over 100GbE, say, or 400IB, on paper")
        ->type_name("NAME")
        ->needs(of_ranks);
  }

  train_app->footer(
      text(threads_too, what_a_run_leaves, environment,
           examples(model, {"train", "train --data mnist --epochs 10 --out run", "train --resume --out run",
                            "train --init weights.safetensors --skip 'head.*'"})));
  eval_app->footer(text(threads_too, examples(model, {"eval --out run", "eval --out run --confusion confusion.svg"})));
  predict_app->footer(text(
      threads_too, examples(model, {"predict --out run photo.jpg", "predict --out run --json --topk 5 a.png b.png"})));
  if (attention_app)
    attention_app->footer(text(threads_too, examples(model, {"attention --out run photo.jpg -o seen.svg"})));
  if (more_app) more_app->footer(text(threads_too, examples(model, more->examples)));
  bench_app->footer(text(threads_too, examples(model, {"bench --batch 1 64", "bench --kernels --batch 64"})));
  export_app->footer(
      examples(model, {"export --out run --dtype f16 -o weights.safetensors", "export --out run --onnx model.onnx"}));
  import_app->footer(examples(model, {"import weights.safetensors --out run"}));
  pack_app->footer(examples(model, {"pack --data photos -o photos.packed", "train --data photos.packed"}));
  summary_app->footer(examples(model, {"summary", "summary --html model.html"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) {
      app.exit(wrong);
      return finished(0);
    }
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const CLI::App* const used = parsed.empty() ? nullptr : parsed.back();
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&wrong) && !app.remaining(true).empty();
    const std::string said = unknown ? about_unknown(app, used, app.remaining(true)) : without_controls(wrong.what());
    std::cerr << model.name << ": " << said << " (" << model.name << (used ? " " + used->get_name() : "")
              << " --help tells more)" << std::endl;
    return 2;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << model.name << ": say what to do, for example " << (train ? "train, " : "")
              << (model.outputs_are_features ? "embed or similar (" : "eval or predict (") << model.name
              << " --help tells more)" << std::endl;
    return 2;
  }
  std::optional<Gpu> gpu;
  ranks.set_timeout(rank_timeout);
  ranks.agree([&] {
    if (*train_app && !train)
      fail("the declaration has no loss: there is nothing to train (a recipe beside forward gives it one)");
    if (!ranks.alone() && !*train_app && !*eval_app)
      fail(app.get_subcommands().front()->get_name(), " is for one process, not for ", ranks.size(), " ranks");
    use_threads(threads);
    if (device == "cuda" && model.cuda && !ranks.alone()) {
      if (!model.gpu_ranks)
        fail(
            "this program was built without NCCL, its ranks compute on CPUs only: --device cuda is for one rank "
            "(DISTRIBUTED mpi nccl in tessera_add_model lets each rank use a GPU)");
      model.gpu_ranks->choose(static_cast<int>(launched_rank_of_machine()));
    }
    if (device == "cuda") gpu.emplace(model);
    std::error_code unknown;
    if (*train_app && ranks.leads() && !training.resume && !overwrite &&
        std::filesystem::is_regular_file(training.out / "checkpoint.safetensors", unknown))
      fail(training.out.string(),
           " holds a run already: --resume goes on with it, --overwrite starts another and keeps its checkpoint as "
           "checkpoint.previous.safetensors");
  });
  const Gpu* const on = gpu ? &*gpu : nullptr;
  if (*train_app) {
    training.gpu = on;
    training.ranks = &ranks;
    Session session(model, recipe, training);
    return finished(train(session));
  }
  if (model.outputs_are_features && (*eval_app || (*predict_app && prediction.head.empty())))
    fail("the declaration has no classes: ", model.name,
         " embed gives its features, predict --head FILE takes a head that "
         "probe has fitted to them");
  if (*eval_app) return finished(evaluate_command(model, recipe, evaluation, on, ranks));
  if (*predict_app) return finished(predict_command(model, recipe, evaluation, prediction, on));
  if (attention_app && *attention_app) return finished(attention_command(model, recipe, evaluation, look, on));
  if (more_app && *more_app) return finished(more->run({model, recipe, evaluation.file(), prediction.labels, on}));
  if (const std::optional<int> code = features.run(on)) return finished(*code);
  if (*bench_app) return finished(bench_command(model, recipe, speed, on));
  if (*export_app) return finished(export_command(model, recipe, evaluation, exported));
  if (*pack_app) {
    DataChoice choice;
    choice.folder = packed_from.value_or("");
    choice.digits = packed_digits.value_or(choice.digits);
    choice.limit = packed_limit.value_or(0);
    return finished(pack_command(model, recipe, choice, packed_to));
  }
  if (*import_app) {
    import_parameters(imported.file, evaluation.out, model, imported.skip, recipe.seed);
    return finished(0);
  }
  if (!architecture.empty() && !model.predict)
    fail("this program was emitted without CUDA kernels: there is nothing to predict (CUDA in tessera_add_model)");
  if (!page.empty()) {
    spare_models(page, Output::other);
    write_file(page, page_of(model, times));
    std::cout << page.string() << " shows the model\n";
    return finished(0);
  }
  const std::string predicted = architecture.empty() ? "" : "\n" + model.predict(architecture, predicted_batch);
  std::string ranked;
  if (summary_ranks > 0) {
    const std::int64_t parts = summary_parts > 0 ? summary_parts : std::max(recipe.accumulate, summary_ranks);
    ranked = ranks_text(model, recipe, static_cast<int>(summary_ranks), parts, network);
  }
  std::cout << summary_text(model, recipe) << ranked << predicted;
  return finished(0);
}

}  // namespace

namespace {

/// Threads that wait shall sleep. GCC's OpenMP lets them spin unless told otherwise before the program starts, and then
/// a machine with anything else to do makes training many times slower (measured: 7 times with four busy processes on
/// two cores). So the program starts itself once more with the word said; where that fails, it goes on as it is.
void let_waiting_threads_sleep(char** argv) {
#ifdef _OPENMP
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  if (::setenv("OMP_WAIT_POLICY", "passive", 1) == 0) ::execv("/proc/self/exe", argv);
#else
  (void)argv;
#endif
}

/// An error's sentence, or its list of lines that begin with blanks, without what a terminal would obey.
std::string for_people(const std::string& message) {
  std::string shown = without_controls(message);
  for (std::size_t at = message.find("\n  "); at != std::string::npos; at = message.find("\n  ", at + 1))
    shown[at] = '\n';
  return shown;
}

/// Where memory runs out in a place that may not throw, in a library for instance, the program still ends in a
/// sentence.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
  } catch (...) {
    std::abort();
  }
  std::fputs("the program cannot go on: there is not enough memory\n", stderr);
  std::_Exit(1);
}

}  // namespace

int program(const Model& model, const Recipe& recipe, int (*train)(Session&), int argc, char** argv,
            const std::optional<Command>& more) {
  std::set_terminate(end_without_memory);
  Communicator ranks;
  const auto say = [&](const std::string& sentence) {
    const std::string said = text(model.name, ": ", for_people(sentence), "\n");
    std::fputs(said.c_str(), stderr);
  };
  try {
    try {
      let_waiting_threads_sleep(argv);
      ranks.open(model);
      const int code = run(model, recipe, train, argc, argv, more, ranks);
      ranks.close();
      return code;
    } catch (const AgreedError& error) {
      if (ranks.leads()) say(error.what());
      ranks.close();
      return 1;
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    } catch (const std::exception&) {
      // Before the ranks know each other all of them find the same.
      if (!ranks.alone() || launched_rank() == 0) say(sentence_of_error());
      if (ranks.alone()) return 1;
      std::_Exit(1);  // the others are not waited for: their launcher ends them
    }
  } catch (const std::exception&) {  // out of memory while saying something else
  }
  std::fprintf(stderr, "%s: there is not enough memory\n", model.name.c_str());  // which allocates nothing
  if (!ranks.alone()) std::_Exit(1);
  return 1;
}

}  // namespace tessera::runtime
