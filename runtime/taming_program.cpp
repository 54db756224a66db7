#include "runtime/taming_program.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/batches.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/command.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/image.hpp"
#include "runtime/matching.hpp"
#include "runtime/numbers.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/progress.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/taming_keys.hpp"

namespace tessera::runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view checkpoint_file = "checkpoint.safetensors";
constexpr std::int64_t images_at_once = 64;

std::size_t place(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A run's folder means its checkpoint.
fs::path file_of(const fs::path& run) { return fs::is_directory(run) ? run / checkpoint_file : run; }

/// The parameters of a model out of a file that may hold others as well: the other half of the VQGAN, other stages.
Arena parameters_of(const Model& model, const fs::path& file) {
  Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  std::vector<std::string> left_out;  // nobody asked for them
  Safetensors content = read_safetensors(file);
  std::erase_if(content.tensors, [](const auto& one) { return one.first.starts_with("optimizer."); });
  content = from_taming(std::move(content), model, left_out);
  Matching matching(content, model);
  matching.take("", parameters.floats());
  matching.finish();
  return parameters;
}

PackedPass pass_from(const ForwardPass& pass, const fs::path& file) {
  Model model;
  model.name = "the VQGAN";
  model.parameters = pass.parameters;
  model.parameter_floats = pass.parameter_floats;
  model.alignment = pass.alignment;
  return {pass, parameters_of(model, file)};
}

/// FNV-1a of the codes: two VQGANs with one hash give tokens the same meaning.
std::string codebook_hash(const ForwardPass& decode, const PackedPass& loaded) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const tessera_parameter& row : decode.parameters) {
    if (row.name != std::string_view("quantize.embedding.weight")) continue;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(loaded.parameters() + row.offset);
    for (std::int64_t i = 0; i < elements(shape_of(row)) * 4; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  char text_of_hash[17];
  std::snprintf(text_of_hash, sizeof text_of_hash, "%016llx", static_cast<unsigned long long>(hash));
  return text_of_hash;
}

std::int64_t floats_of(const std::int64_t (&shape)[3]) { return shape[0] * shape[1] * shape[2]; }

/// What a run holds beside its parameters.
struct Run {
  std::string codebook, vqgan;  ///< the hash of the codes, and where the VQGAN was
  std::int64_t step = 0;
  std::map<std::string, std::string> settings;  ///< that decide its bits, as text
};

std::string metadata_of(const Safetensors& file, const std::string& key) {
  const auto at = file.metadata.find(key);
  return at == file.metadata.end() ? "" : at->second;
}

void put(Safetensors& file, const Model& model, const std::string& front, const float* numbers) {
  for (const tessera_parameter& row : model.parameters)
    file.tensors[front + row.name] =
        Tensor::of(shape_of(row), std::span(numbers + row.offset, place(elements(shape_of(row)))));
}

struct Tokens {
  std::vector<std::int32_t> read, wanted;  ///< [images, positions]: the class and all but the last; all
  std::int64_t images = 0;
};

/// A data set as tokens.
Tokens tokens_of(const Taming& taming, const PackedPass& encode, const Dataset& data, const char* what) {
  const std::int64_t positions = taming.tokens.window.rows * taming.tokens.window.columns;
  if (taming.classes && data.classes > taming.classes)
    fail(data.source, ": has ", data.classes, " classes, and ", taming.gpt.name, " knows ", taming.classes);
  if (data.image_size() != floats_of(taming.image_shape))
    fail(data.source, ": its images are [", data.channels, ", ", data.height, ", ", data.width, "], and the VQGAN's [",
         taming.image_shape[0], ", ", taming.image_shape[1], ", ", taming.image_shape[2], "]");
  Counter counter(text("encoding ", what, " images"), data.size());
  Tokens tokens;
  tokens.images = data.size();
  for (std::int64_t first = 0; first < data.size(); first += images_at_once) {
    const std::int64_t batch = std::min(images_at_once, data.size() - first);
    std::vector<float> images;
    for (std::int64_t i = first; i < first + batch; ++i) {
      const std::vector<float> one = numbers_of_pixels(data.image(i));
      images.insert(images.end(), one.begin(), one.end());
    }
    const std::vector<float> numbers =
        encode(images, floats_of(taming.image_shape), [&](std::int64_t done) { counter.add(done); });
    for (std::int64_t i = 0; i < batch; ++i) {
      tokens.read.push_back(taming.classes ? data.labels[place(first + i)] : static_cast<std::int32_t>(taming.start));
      for (std::int64_t t = 0; t < positions; ++t) {
        const auto token = static_cast<std::int32_t>(numbers[place(i * positions + t)]);
        tokens.wanted.push_back(token);
        if (t + 1 < positions) tokens.read.push_back(token);
      }
    }
  }
  return tokens;
}

struct GptTraining {
  fs::path vqgan, out;
  DataChoice data;
  std::int64_t steps = 0, batch = 0;
  std::uint64_t seed = 1;
  double learning_rate = 0;
  bool resume = false;

  /// All that a run's bits follow from, but how long it is and its codebook.
  std::map<std::string, std::string> settings() const {
    return {{"batch", std::to_string(batch)},
            {"seed", std::to_string(seed)},
            {"learning rate", shortest(learning_rate)},
            {"data", data.folder.empty() ? "built-in digits" : fs::absolute(data.folder).string()},
            {"number of digits", std::to_string(data.digits)},
            {"limit of images", std::to_string(data.limit)}};
  }
};

class Trainer {
 public:
  Trainer(const Taming& taming, const GptTraining& options)
      : taming_(taming),
        options_(options),
        positions_(taming.tokens.window.rows * taming.tokens.window.columns),
        parameters_(arena(taming.gpt.parameter_floats)),
        packed_(arena(taming.gpt.packed_floats + 1)),
        gradients_(arena(taming.gpt.parameter_floats)),
        optimizer_(arena(taming.gpt.optimizer_floats())) {}

  int run() {
    make_folder(options_.out);
    const FolderLock lock(options_.out);
    const fs::path path = options_.out / checkpoint_file;
    if (!options_.resume && fs::exists(path))
      fail(path.string(), " is there already: --resume goes on with it, another --out begins anew");
    const fs::path vqgan = file_of(options_.vqgan);
    const PackedPass encode = pass_from(taming_.encode, vqgan);
    run_ = {codebook_hash(taming_.decode, pass_from(taming_.decode, vqgan)), fs::absolute(vqgan).string(), 0,
            options_.settings()};
    if (options_.resume)
      resume(path);
    else
      check(taming_.gpt.init(parameters_.floats(), options_.seed));
    check(taming_.gpt.pack(parameters_.floats(), packed_.floats()));
    const Tokens training = tokens(encode, Split::train, "training"), test = tokens(encode, Split::test, "test");
    const std::int64_t batch = std::min(options_.batch, training.images);
    Counter counter("training steps", options_.steps - run_.step);
    double sum = 0;
    std::int64_t summed = 0;
    while (run_.step < options_.steps) {
      sum += step(training, batch);
      ++summed;
      counter.add(1);
      if (run_.step % 100 && run_.step < options_.steps) continue;
      std::cout << "step " << run_.step << "/" << options_.steps << "  loss " << fixed(sum / double(summed), 4)
                << "  test " << fixed(evaluate(test), 4) << " nats a token" << std::endl;
      sum = 0, summed = 0;
      if (run_.step % 500 == 0 || run_.step == options_.steps) save(path);
    }
    std::cout << path.string() << std::endl;
    return 0;
  }

 private:
  Arena arena(std::int64_t floats) const { return Arena::of_floats(floats, taming_.gpt.alignment); }
  void check(int code) const {
    if (code) fail(taming_.gpt.name, ": ", taming_.gpt.error(code));
  }

  Tokens tokens(const PackedPass& encode, Split split, const char* what) const {
    Model pictures;
    pictures.name = taming_.gpt.name;
    std::copy_n(taming_.image_shape, 3, pictures.image_shape);
    return tokens_of(taming_, encode, load(options_.data, split, pictures, {}), what);
  }

  /// One on the images whose turn it is: the order of an epoch depends on the seed alone.
  double step(const Tokens& training, std::int64_t batch) {
    const std::int64_t of_epoch = training.images / batch, epoch = run_.step / of_epoch, at = run_.step % of_epoch;
    if (at == 0 || order_.empty()) order_ = shuffled(training.images, options_.seed, epoch);
    std::vector<std::int32_t> read, wanted;
    for (std::int64_t i = at * batch; i < (at + 1) * batch; ++i) {
      const std::int64_t first = order_[place(i)] * positions_;
      read.insert(read.end(), training.read.begin() + first, training.read.begin() + first + positions_);
      wanted.insert(wanted.end(), training.wanted.begin() + first, training.wanted.begin() + first + positions_);
    }
    const std::int64_t at_once = taming_.gpt.images_at_once(batch);
    outputs_.resize(place(batch * positions_ * taming_.tokens.codes));
    if (!scratch_) scratch_.emplace(taming_.gpt.train_scratch_bytes(at_once), taming_.gpt.alignment);
    float loss = 0;
    ++run_.step;
    check(taming_.train_step(parameters_.floats(), packed_.floats(), gradients_.floats(), optimizer_.floats(),
                             read.data(), wanted.data(), batch, at_once, options_.seed, run_.step,
                             static_cast<float>(options_.learning_rate), outputs_.data(), &loss, scratch_->data()));
    if (!std::isfinite(loss)) fail("step ", run_.step, ": the loss is not a number");
    return static_cast<double>(loss);
  }

  /// The mean over all tokens of the test images.
  double evaluate(const Tokens& test) {
    double sum = 0;
    const std::int64_t batch = std::min(images_at_once, test.images);
    std::vector<float> outputs(place(batch * positions_ * taming_.tokens.codes));
    const Arena scratch(taming_.gpt.evaluate_scratch_bytes(batch), taming_.gpt.alignment);
    for (std::int64_t first = 0; first < test.images; first += batch) {
      const std::int64_t images = std::min(batch, test.images - first);
      float loss = 0;
      check(taming_.evaluate(parameters_.floats(), packed_.floats(), test.read.data() + first * positions_,
                             test.wanted.data() + first * positions_, images, outputs.data(), &loss, scratch.data()));
      sum += static_cast<double>(loss) * static_cast<double>(images);
    }
    return sum / static_cast<double>(test.images);
  }

  void save(const fs::path& path) const {
    Safetensors file;
    put(file, taming_.gpt, "", parameters_.floats());
    for (std::size_t i = 0; i < taming_.gpt.optimizer_state.size(); ++i)
      put(file, taming_.gpt, taming_.gpt.optimizer_state[i],
          optimizer_.floats() + static_cast<std::int64_t>(i) * taming_.gpt.parameter_floats);
    file.metadata = run_.settings;
    file.metadata.insert({{"codebook", run_.codebook}, {"vqgan", run_.vqgan}, {"step", std::to_string(run_.step)}});
    write_safetensors(path, file);
  }

  void resume(const fs::path& path) {
    const Safetensors file = read_safetensors(path);
    if (metadata_of(file, "codebook") != run_.codebook)
      fail(path.string(), ": was trained on another codebook than that of ", options_.vqgan.string());
    for (const auto& [what, value] : run_.settings)
      if (metadata_of(file, what) != value)
        fail(path.string(), ": its ", what, " is ", printable(metadata_of(file, what)), ", not ", printable(value));
    Matching matching(file, taming_.gpt);
    matching.take("", parameters_.floats());
    for (std::size_t i = 0; i < taming_.gpt.optimizer_state.size(); ++i)
      matching.take(taming_.gpt.optimizer_state[i],
                    optimizer_.floats() + static_cast<std::int64_t>(i) * taming_.gpt.parameter_floats);
    matching.finish();
    const std::string step = metadata_of(file, "step");
    if (step.empty() || step.size() > 12 || !std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; }))
      fail(path.string(), ": does not say which step it is of");
    run_.step = std::stoll(step);
  }

  const Taming& taming_;
  const GptTraining& options_;
  const std::int64_t positions_;
  Arena parameters_, packed_, gradients_, optimizer_;
  std::optional<Arena> scratch_;
  std::vector<float> outputs_;
  std::vector<std::int32_t> order_;
  Run run_;
};

struct GptSampling {
  fs::path out, vqgan, complete, sheet;
  std::optional<std::int64_t> of_class;
  std::int64_t count = 16, top_k = 0;
  float temperature = 1, top_p = 1;
  std::uint64_t seed = 1;
  bool greedy = false;
  std::string size;
};

/// "10x12"
Grid grid_of(const std::string& size) {
  int rows = 0, columns = 0;
  char rest = 0;
  if (std::sscanf(size.c_str(), "%4dx%4d%c", &rows, &columns, &rest) != 2)
    fail("--size ", printable(size), ": rows and columns of tokens are needed, as 10x12");
  return {rows, columns};
}

/// The tokens of the rows that a picture's upper half, or all that there is of it, covers.
std::vector<std::int32_t> tokens_of_half(const Taming& taming, const fs::path& vqgan, const fs::path& path) {
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.tokens.window;
  const Image picture = decode_image(read_file(path, longest_picture), channels, path.string());
  const std::int64_t row = height / window.rows;
  if (picture.width != width || picture.height < row || picture.height > height)
    fail(path.string(), ": is ", picture.width, "x", picture.height, " pixels; what is completed is ", width,
         " across and from ", row, " to ", height, " down");
  Bytes pixels(place(channels * height * width));
  for (std::int64_t c = 0; c < channels; ++c)
    std::copy_n(picture.pixels.begin() + c * picture.height * width, picture.height * width,
                pixels.begin() + c * height * width);
  const std::vector<float> numbers =
      pass_from(taming.encode, vqgan)(numbers_of_pixels(pixels), channels * height * width);
  const std::int64_t rows = picture.height == height ? window.rows / 2 : picture.height / row;
  return {numbers.begin(), numbers.begin() + rows * window.columns};
}

/// Pixels [images, channels, height, width] of a grid. One that is larger than the window is decoded window by window:
/// each token's square is that of the window which the token was drawn in.
std::vector<float> pictures(const Taming& taming, const PackedPass& decode, const std::vector<std::int32_t>& tokens,
                            std::int64_t images, const Grid& grid) {
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.tokens.window;
  const std::int64_t down = height / window.rows, across = width / window.columns;
  const std::int64_t all_down = grid.rows * down, all_across = grid.columns * across;
  std::vector<float> pixels(place(images * channels * all_down * all_across));
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::pair<std::int64_t, std::int64_t>>> windows;
  for (std::int64_t i = 0; i < grid.rows; ++i)
    for (std::int64_t j = 0; j < grid.columns; ++j)
      windows[{window_start(i, grid.rows, window.rows), window_start(j, grid.columns, window.columns)}].push_back(
          {i, j});
  for (const auto& [corner, cells] : windows) {
    const auto [top, left] = corner;
    std::vector<float> numbers;
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t y = 0; y < window.rows; ++y)
        for (std::int64_t x = 0; x < window.columns; ++x)
          numbers.push_back(static_cast<float>(tokens[place((image * grid.rows + top + y) * grid.columns + left + x)]));
    const std::vector<float> decoded = decode(numbers, window.rows * window.columns);
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t c = 0; c < channels; ++c)
        for (const auto& [i, j] : cells)
          for (std::int64_t y = 0; y < down; ++y)
            std::copy_n(
                &decoded[place(((image * channels + c) * height + (i - top) * down + y) * width + (j - left) * across)],
                across, &pixels[place(((image * channels + c) * all_down + i * down + y) * all_across + j * across)]);
  }
  return pixels;
}

int sample(const Taming& taming, const GptSampling& options) {
  const Model& gpt = taming.gpt;
  const fs::path file = file_of(options.out);
  if (options.of_class && !taming.classes) fail("--class: ", gpt.name, " is not trained by class");
  if (options.of_class && (*options.of_class < 0 || *options.of_class >= taming.classes))
    fail("--class ", *options.of_class, ": there are the classes 0 to ", taming.classes - 1);
  const Grid grid = options.size.empty() ? taming.tokens.window : grid_of(options.size);
  if (!options.complete.empty() && !options.size.empty())
    fail("--complete and --size: what is completed is as large as what was trained on");
  check_target(options.sheet);
  const Safetensors about{{}, read_metadata(file), file.string()};
  const fs::path vqgan = options.vqgan.empty() ? fs::path(metadata_of(about, "vqgan")) : file_of(options.vqgan);
  if (vqgan.empty()) fail(file.string(), ": does not say which VQGAN its tokens are of; --vqgan names it");
  const Arena parameters = parameters_of(gpt, file),
              packed = Arena::of_floats(gpt.packed_forward_floats + 1, gpt.alignment);
  if (const int code = gpt.pack_forward(parameters.floats(), packed.floats())) fail(gpt.name, ": ", gpt.error(code));
  const PackedPass decode = pass_from(taming.decode, vqgan);
  const std::string trained_on = metadata_of(about, "codebook"), codebook = codebook_hash(taming.decode, decode);
  if (!trained_on.empty() && trained_on != codebook)
    fail(file.string(), ": was trained on another codebook (", trained_on, ") than that of ", vqgan.string(), " (",
         codebook, ")");
  const std::vector<std::int32_t> half =
      options.complete.empty() ? std::vector<std::int32_t>() : tokens_of_half(taming, vqgan, options.complete);
  std::vector<std::int32_t> tokens;
  {
    Counter counter("tokens", options.count * grid.rows * grid.columns);
    for (std::int64_t first = 0; first < options.count; first += images_at_once) {
      const std::int64_t batch = std::min(images_at_once, options.count - first);
      Drawing drawing{.grid = grid,
                      .start = {},
                      .given = {},
                      .temperature = options.temperature,
                      .top_k = options.top_k,
                      .top_p = options.top_p,
                      .uniforms = options.greedy ? nullptr : uniforms_of(options.seed, first)};
      for (std::int64_t i = first; i < first + batch; ++i) {
        drawing.start.push_back(
            static_cast<std::int32_t>(taming.classes ? options.of_class.value_or(i % taming.classes) : taming.start));
        drawing.given.insert(drawing.given.end(), half.begin(), half.end());
      }
      const std::vector<std::int32_t> drawn = draw_tokens(taming.tokens, parameters.floats(), packed.floats(), drawing,
                                                          [&](std::int64_t) { counter.add(batch); });
      tokens.insert(tokens.end(), drawn.begin(), drawn.end());
    }
  }
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.tokens.window;
  const std::int64_t shape[3] = {channels, height / window.rows * grid.rows, width / window.columns * grid.columns};
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(options.count))));
  const Bytes png = picture_sheet(pictures(taming, decode, tokens, options.count, grid), shape, columns, 0);
  const std::span<const std::uint8_t> part(png);
  write_file(options.sheet, std::span(&part, 1));
  std::cout << options.sheet.string() << ": " << options.count << " pictures" << std::endl;
  return 0;
}

int export_keys(const Taming& taming, const fs::path& out, const fs::path& to) {
  const Arena parameters = parameters_of(taming.gpt, file_of(out));
  spare_models(to, Output::parameters);
  Safetensors file;
  put(file, taming.gpt, "", parameters.floats());
  write_safetensors(to, as_taming(std::move(file)));
  std::cout << to.string() << std::endl;
  return 0;
}

int run(const Taming& taming, int argc, char** argv) {
  CLI::App app("Trains a transformer on the tokens of a VQGAN, and draws pictures with it.", taming.gpt.name);
  app.require_subcommand(1);
  GptTraining training{.vqgan = {},
                       .out = "gpt",
                       .data = {},
                       .steps = taming.steps,
                       .batch = taming.batch,
                       .learning_rate = taming.learning_rate};
  CLI::App* const train = app.add_subcommand("train", "Encode the data once, and train on its tokens");
  train->add_option("--vqgan", training.vqgan, "A run of the VQGAN, or a file with its parameters")->required();
  train->add_option("--out", training.out, "The folder of the run")->capture_default_str();
  train->add_option("--data", training.data.folder, "A folder with a data set; without it built-in digits");
  train->add_option("--images", training.data.limit, "Only so many")->check(CLI::Range(std::int64_t{1}, most_digits));
  train->add_option("--steps", training.steps, "Steps")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  train->add_option("--batch", training.batch, "Images of a step")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 16))
      ->capture_default_str();
  train->add_option("--learning-rate", training.learning_rate, "Of AdamW")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  train->add_option("--seed", training.seed, "Of starting values and of the order of images")->capture_default_str();
  train->add_flag("--resume", training.resume, "Go on with the run in --out");
  GptSampling sampling;
  sampling.out = training.out;
  CLI::App* const draw = app.add_subcommand("sample", "Draw pictures");
  draw->add_option("--out", sampling.out, "A run, or a file of parameters")->capture_default_str();
  draw->add_option("--vqgan", sampling.vqgan, "Where the VQGAN is, if not where training found it");
  draw->add_option("--class", sampling.of_class, "Of this class; without it of all in turn");
  draw->add_option("--count", sampling.count, "Pictures")->check(CLI::Range(1, 4096))->capture_default_str();
  draw->add_option("--topk", sampling.top_k, "Of the most probable codes alone; 0: of all")->capture_default_str();
  draw->add_option("--topp", sampling.top_p, "Of the smallest set whose probability exceeds it")->capture_default_str();
  draw->add_option("--temperature", sampling.temperature, "Divides the logits")->capture_default_str();
  draw->add_option("--seed", sampling.seed, "Of what is drawn")->capture_default_str();
  draw->add_flag("--greedy", sampling.greedy, "Always the most probable code");
  draw->add_option("--complete", sampling.complete, "A picture whose upper half is kept");
  draw->add_option("--size", sampling.size, "Rows and columns of tokens, as 10x12, through a sliding window");
  draw->add_option("-o", sampling.sheet, "The PNG file")->required();
  fs::path from = training.out, to;
  CLI::App* const exported = app.add_subcommand("export", "Write the parameters with published keys");
  exported->add_option("--out", from, "A run, or a file of parameters")->capture_default_str();
  exported->add_option("-o", to, "The safetensors file")->required();
  std::string device = "cpu";
  for (CLI::App* const computes : {train, draw}) add_device_option(computes, device);
  CLI11_PARSE(app, argc, argv);
  if (device == "cuda")
    fail("--device cuda: a step of one token has no kernels for GPUs, this program computes on the CPU only");
  if (training.data.folder.empty() && training.data.limit) training.data.digits = std::exchange(training.data.limit, 0);
  if (*train) return Trainer(taming, training).run();
  if (*draw) return sample(taming, sampling);
  return export_keys(taming, from, to);
}

}  // namespace

int taming_program(const Taming& taming, int argc, char** argv) {
  try {
    return run(taming, argc, argv);
  } catch (const std::exception&) {
    std::fprintf(stderr, "%s: %s\n", taming.gpt.name.c_str(), sentence_of_error().c_str());
    return 1;
  }
}

}  // namespace tessera::runtime
