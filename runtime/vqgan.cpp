#include "runtime/vqgan.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/batches.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/cli/help.hpp"
#include "runtime/cli/subcommand.hpp"
#include "runtime/cli/unknown_word.hpp"
#include "runtime/command.hpp"
#include "runtime/curve.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/divergence.hpp"
#include "runtime/ending.hpp"
#include "runtime/environment.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/gpu.hpp"
#include "runtime/html.hpp"
#include "runtime/image.hpp"
#include "runtime/labels.hpp"
#include "runtime/matching.hpp"
#include "runtime/numbers.hpp"
#include "runtime/picture_report.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/progress.hpp"
#include "runtime/ranges.hpp"
#include "runtime/run_start.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/session.hpp"
#include "runtime/tokens.hpp"

namespace tessera::runtime {
namespace {

namespace fs = std::filesystem;
using Floats = std::vector<float>;

constexpr Preprocessing minus_one_to_one{.mean = {0.5, 0.5, 0.5}, .deviation = {0.5, 0.5, 0.5}};
constexpr double seconds_between_checkpoints = 20;
constexpr std::int64_t at_once = 32;  // images that are read together

/// What checkpoints are read and written by.
Model checkpoint_of(const Vqgan& m) {
  Model model;
  model.name = m.name;
  model.declaration_hash = m.generator.declaration_hash ^ (m.discriminator.declaration_hash << 1);
  model.parameters = m.generator.parameters;
  model.parameter_floats = m.generator.parameter_floats;
  model.optimizer_state = {"optimizer.m.", "optimizer.v."};
  model.alignment = m.generator.alignment;
  std::copy_n(m.image_shape, 3, model.image_shape);
  return model;
}

std::int64_t image_floats(const Vqgan& m) {
  return size_product({m.image_shape[0], m.image_shape[1], m.image_shape[2]});
}
std::int64_t positions(const Vqgan& m) { return m.tokens.rows * m.tokens.columns; }

/// A forward pass with its parameters out of those that lie as `from` says.
PackedPass pass_of(const ForwardPass& pass, std::span<const tessera_parameter> from, const float* parameters,
                   bool on_gpu) {
  Arena own = Arena::of_floats(pass.parameter_floats, pass.alignment);
  for (const tessera_parameter& row : pass.parameters)
    for (const tessera_parameter& theirs : from)
      if (std::string_view(row.name) == theirs.name)
        std::copy_n(parameters + theirs.offset, elements(shape_of(row)), own.floats() + row.offset);
  return {pass, std::move(own), on_gpu};
}

/// How near reconstructions are: of pixels in [0, 1], clamped, and of numbers in [-1, 1].
struct Nearness {
  double squares = 0, absolute = 0, count = 0;

  void add(std::span<const float> images, std::span<const float> reconstructions) {
    if (!std::ranges::all_of(reconstructions, [](float number) { return std::isfinite(number); }))
      fail("the reconstructions are not numbers: these parameters cannot be used");
    for (std::size_t i = 0; i < images.size(); ++i) {
      const double d = (std::clamp(reconstructions[i], -1.0F, 1.0F) - std::clamp(images[i], -1.0F, 1.0F)) / 2.0;
      squares += d * d;
      absolute += std::fabs(static_cast<double>(reconstructions[i]) - images[i]);
    }
    count += static_cast<double>(images.size());
  }
  double mse() const { return squares / count; }
  double l1() const { return absolute / count; }
  double psnr() const { return -10 * std::log10(std::max(mse(), 1e-30)); }
  std::string words() const { return text("MSE ", shortest(mse()), ", PSNR ", fixed(psnr(), 2), " dB"); }
};

/// How often each code was the nearest.
struct CodeUsage {
  explicit CodeUsage(std::int64_t codes) : counts(static_cast<std::size_t>(codes)) {}
  std::vector<std::int64_t> counts;

  void add(std::span<const float> numbers) {
    for (const std::int32_t token : tokens_of_numbers(numbers, std::ssize(counts)))
      ++counts[static_cast<std::size_t>(token)];
  }
  std::int64_t used() const { return std::ssize(counts) - std::count(counts.begin(), counts.end(), 0); }
  /// exp of the entropy of the codes' shares: as many as there are where all are used alike.
  double perplexity() const {
    double all = 0, entropy = 0;
    for (const std::int64_t count : counts) all += static_cast<double>(count);
    for (const std::int64_t count : counts)
      if (count > 0) entropy -= static_cast<double>(count) / all * std::log(static_cast<double>(count) / all);
    return std::exp(entropy);
  }
};

Floats images_of(const Dataset& data, std::int64_t first, std::int64_t count) {
  Floats images;
  for (std::int64_t i = first; i < std::min(first + count, data.size()); ++i) {
    const Floats one = numbers_of_pixels(data.image(i));
    images.insert(images.end(), one.begin(), one.end());
  }
  return images;
}

struct Tested {
  Nearness nearness;
  CodeUsage usage;
};

Tested test(const Vqgan& m, std::span<const tessera_parameter> from, const float* parameters, const Dataset& data,
            bool on_gpu) {
  const PackedPass encode = pass_of(m.encode, from, parameters, on_gpu),
                   reconstruct = pass_of(m.reconstruct, from, parameters, on_gpu);
  Tested tested{{}, CodeUsage(m.codes)};
  for (std::int64_t i = 0; i < data.size(); i += at_once) {
    const Floats images = images_of(data, i, at_once);
    tested.usage.add(encode(images, image_floats(m)));
    tested.nearness.add(images, reconstruct(images, image_floats(m)));
  }
  return tested;
}

std::string words(const Vqgan& m, const Tested& tested) {
  return text(tested.nearness.words(), ", L1 ", fixed(tested.nearness.l1(), 4), ", codes ", tested.usage.used(), " of ",
              m.codes, ", perplexity ", fixed(tested.usage.perplexity(), 1));
}

void write_sheet(const Vqgan& m, const fs::path& path, std::span<const float> images, std::int64_t columns,
                 const std::vector<fs::path>& inputs = {}) {
  spare_models(path, Output::other, inputs);
  const Bytes png = picture_sheet(images, m.image_shape, columns, 2);
  write_file(path, std::string_view(reinterpret_cast<const char*>(png.data()), png.size()));
}

/// A picture as the model reads it.
Floats read_picture(const Vqgan& m, const fs::path& path) {
  const Bytes content = read_file(path, longest_picture);
  return numbers_of_pixels(
      fit(decode_image(content, m.image_shape[0], path.string()), m.image_shape[1], m.image_shape[2]).pixels);
}

// ---- training -----------------------------------------------------------------------------------------------------

struct TrainFlags {
  fs::path out = "run";
  std::optional<fs::path> data, perceptual;
  std::optional<std::int64_t> digits, limit, epochs, batch;
  std::optional<std::uint64_t> seed;
  bool resume = false, overwrite = false, on_gpu = false;
};

constexpr std::string_view of_metric = "loss.perceptual_loss.";

/// Puts what the perceptual loss compares images by, which is not trained here, among the parameters.
void take_metric(const Vqgan& m, const std::optional<fs::path>& from, float* parameters) {
  std::vector<tessera_parameter> rows;
  for (const tessera_parameter& row : m.generator.parameters)
    if (std::string_view(row.name).starts_with(of_metric)) rows.push_back(row);
  if (rows.empty()) {
    if (from) fail("--perceptual: ", m.name, " has no perceptual loss");
    return;
  }
  if (!from)
    fail("the perceptual loss takes the weights of VGG16 and LPIPS as they are: --perceptual names a file with ",
         rows.front().name, " to ", rows.back().name, ", ", rows.size(), " tensors");
  Safetensors file = read_safetensors(*from);
  std::erase_if(file.tensors, [](const auto& one) { return !one.first.starts_with(of_metric); });
  Model metric;
  metric.name = m.name;
  metric.parameters = rows;
  metric.parameter_floats = m.generator.parameter_floats;
  Matching matching(file, metric);
  matching.take("", parameters);
  matching.finish();
}

std::string checkpoint_name(const fs::path& out) { return (out / "checkpoint.safetensors").string(); }

class Training {
 public:
  Training(const Vqgan& m, const TrainFlags& flags)
      : m_(m),
        model_(checkpoint_of(m)),
        out_(flags.out),
        on_gpu_(flags.on_gpu),
        phases_(m.generator, m.discriminator, settle(flags), flags.on_gpu) {
    if (flags.resume)
      state_ = resume_checkpoint(checkpoint_name(out_), model_, phases_.parameters(), phases_.optimizer());
    else
      start(flags.perceptual);
    train_ = load(state_.data, Split::train, model_, minus_one_to_one);
    test_ = load(state_.data, Split::test, model_, minus_one_to_one);
    for (const Dataset* data : {&train_, &test_})
      if (data->channels != m.image_shape[0] || data->height != m.image_shape[1] || data->width != m.image_shape[2])
        fail(m.name, " takes images of ", printed({m.image_shape, m.image_shape + 3}), ", and those of ", data->source,
             " are ", printed({data->channels, data->height, data->width}));
    const std::uint32_t print = train_.fingerprint();
    if (flags.resume && print != state_.fingerprint)
      fail("the images in ", train_.source, " are not those that the run in ", out_.string(), " was started with");
    state_.fingerprint = print;
    if (state_.recipe.epochs < 1 || train_.size() < 1) fail("there is nothing to train on");
  }

  int run() {
    const StopSignals signals;
    const std::int64_t left = state_.recipe.epochs * train_.size();
    Progress progress(left - state_.epoch * train_.size() - state_.position, false);
    Batches batches(train_, state_.recipe, 1, m_.generator.alignment);
    auto saved = std::chrono::steady_clock::now();
    while (state_.epoch < state_.recipe.epochs) {
      batches.begin(state_.epoch, state_.position);
      progress.resume();
      CodeUsage usage(m_.codes);
      bool idle = state_.position == 0;  // whether the discriminator has learned nothing in the whole epoch
      while (const Batch* const batch = batches.next()) {
        step(*batch);
        usage.add(phases_.outputs(0).first(static_cast<std::size_t>(batch->size * positions(m_))));
        idle = idle && std::fabs(phases_.loss("disc_loss") - 1) <= 0.005F && phases_.loss("d_weight") > 10;
        state_.loss_sum += phases_.loss("rec_loss") * static_cast<double>(batch->size);
        state_.seen += batch->size;
        state_.position = batches.position();
        progress.step(batch->size, {state_.epoch + 1, state_.recipe.epochs, state_.position, train_.size(), state_.step,
                                    state_.loss_sum / static_cast<double>(state_.seen), std::nullopt, state_.curve});
        if (state_.step % std::max<std::int64_t>(1, steps_of_epoch() / 50) == 0) add_to_curve(std::nullopt);
        const auto now = std::chrono::steady_clock::now();
        if (!StopSignals::raised() && std::chrono::duration<double>(now - saved).count() < seconds_between_checkpoints)
          continue;
        save();
        saved = now;
        if (!StopSignals::raised()) continue;
        std::cout << "stopped after step " << state_.step << "; go on with: " << m_.name << " train --resume --out "
                  << out_.string() << std::endl;
        return 130;
      }
      end_epoch(progress, usage, idle);
    }
    finish(progress);
    return 0;
  }

 private:
  void start(const std::optional<fs::path>& perceptual) {
    phases_.init(state_.recipe.seed);
    take_metric(m_, perceptual, phases_.parameters());
  }

  std::int64_t steps_of_epoch() const { return (train_.size() + state_.recipe.batch - 1) / state_.recipe.batch; }

  /// The mean since the row before, of |x - y|.
  void add_to_curve(std::optional<double> of_test) {
    if (state_.seen)
      state_.curve.push_back({state_.step, state_.epoch + (of_test ? 0 : 1),
                              rounded(state_.loss_sum / static_cast<double>(state_.seen)), 0, std::nullopt,
                              std::nullopt});
    if (of_test && !state_.curve.empty()) state_.curve.back().test_loss = rounded(*of_test);
    state_.loss_sum = 0;
    state_.seen = 0;
  }

  /// What a new run is started with, or a resumed one was: the batch.
  std::int64_t settle(const TrainFlags& flags) {
    lock_.emplace(out_);
    std::error_code unknown;
    const bool there = fs::is_regular_file(checkpoint_name(out_), unknown);
    if (!flags.resume && there && !flags.overwrite)
      fail(out_.string(), " holds a run already: --resume goes on with it, --overwrite starts another in its place");
    if (flags.resume) {
      if (!there) fail("there is no run in ", out_.string(), " to go on with");
      if (flags.data || flags.digits || flags.limit || flags.epochs || flags.batch || flags.seed || flags.perceptual)
        fail("a resumed run goes on as it was started: --resume takes no other option than --out");
      Floats parameters(static_cast<std::size_t>(model_.parameter_floats)),
          optimizer(static_cast<std::size_t>(model_.optimizer_floats()));
      return resume_checkpoint(checkpoint_name(out_), model_, parameters.data(), optimizer.data()).recipe.batch;
    }
    if (flags.data) demand_text("--data", *flags.data);
    state_.recipe = {.batch = flags.batch.value_or(m_.batch),
                     .epochs = flags.epochs.value_or(m_.epochs),
                     .learning_rate = m_.generator_rate,
                     .seed = flags.seed.value_or(1),
                     .input = minus_one_to_one};
    if (flags.data) state_.data.folder = *flags.data;
    state_.data.digits = flags.digits.value_or(state_.data.digits);
    state_.data.limit = flags.limit.value_or(0);
    return state_.recipe.batch;
  }

  void step(const Batch& batch) {
    const bool started = state_.step >= m_.disc_start;  // steps done before this one
    const float rates[2] = {static_cast<float>(m_.generator_rate * (started ? m_.later : 1)),
                            static_cast<float>(m_.discriminator_rate)};
    phases_.step(batch.images, batch.size, state_.step + 1, started ? 1 : 0, rates);
    ++state_.step;
  }

  void end_epoch(Progress& progress, const CodeUsage& usage, bool idle) {
    ++state_.epoch;
    state_.position = 0;
    const Tested tested = test(m_, model_.parameters, phases_.parameters(), test_, on_gpu_);
    add_to_curve(tested.nearness.l1());
    progress.line(text("epoch ", state_.epoch, "/", state_.recipe.epochs, "  step ", state_.step, "  L1 ",
                       fixed(state_.curve.empty() ? 0 : state_.curve.back().train_loss, 4), "  discriminator ",
                       fixed(phases_.loss("disc_loss"), 3), "  d_weight ", shortest(phases_.loss("d_weight")),
                       "  test ", words(m_, tested)));
    if (usage.perplexity() * 10 < static_cast<double>(m_.codes))
      progress.line(text("warning: the perplexity of the codes is ", fixed(usage.perplexity(), 1),
                         ", below a tenth of the ", m_.codes, " codes: most of the codebook is not used"));
    if (idle)
      progress.line(
          "warning: for an epoch the discriminator's loss has stayed within 0.005 of 1 while d_weight was above 10: it "
          "learns nothing, and its gradient is blown up");
    save();
  }

  void save() {
    const std::string broken = first_not_finite(model_, phases_.parameters());
    if (!broken.empty() || !finite(phases_.optimizer(), phases_.optimizer_floats()))
      fail("training diverged: after step ", state_.step, " some parameters are not numbers",
           broken.empty() ? "" : ", first " + broken);
    save_checkpoint(checkpoint_name(out_), model_, phases_.parameters(), phases_.optimizer(), state_);
  }

  /// Originals above their reconstructions, the codes' counts, and all of it on a page.
  void finish(const Progress& progress) {
    const PackedPass reconstruct = pass_of(m_.reconstruct, model_.parameters, phases_.parameters(), on_gpu_);
    const Floats images = images_of(test_, 0, 32), made = reconstruct(images, image_floats(m_));
    const auto sheet = std::min<std::size_t>(images.size(), static_cast<std::size_t>(16 * image_floats(m_)));
    Floats both(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(sheet));
    both.insert(both.end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(sheet));
    write_sheet(m_, out_ / "reconstructions.png", both, std::min<std::int64_t>(16, test_.size()));
    const Tested tested = test(m_, model_.parameters, phases_.parameters(), test_, on_gpu_);
    std::string counts = "code,count\n";
    for (std::size_t code = 0; code < tested.usage.counts.size(); ++code)
      counts += text(code, ",", tested.usage.counts[code], "\n");
    write_file(out_ / "codes.csv", counts);
    write_report(tested, progress, picture_tiles(images, m_.image_shape, made));
    std::cout << "done: " << words(m_, tested) << " after " << state_.step << " steps\n";
    for (const char* file : {"checkpoint.safetensors", "reconstructions.png", "codes.csv", "report.html"})
      std::cout << "  " << (out_ / file).string() << "\n";
  }

  void write_report(const Tested& tested, const Progress& progress, std::vector<std::string> pairs) const {
    const Section run{"Run",
                      {{"Data", text(grouped(train_.size()), " training and ", grouped(test_.size()), " test images (",
                                     train_.source, ")")},
                       {"Steps", grouped(state_.step)},
                       {"Mean |x - y|", text(fixed(tested.nearness.l1(), 4), " on test images, of numbers in [-1, 1]")},
                       {"Codes", text(tested.usage.used(), " of ", m_.codes, " in use, perplexity ",
                                      fixed(tested.usage.perplexity(), 1))},
                       {"Speed", text(grouped(static_cast<std::int64_t>(progress.rate())), " images/s, ",
                                      fixed(progress.seconds(), 1), " s of training in this run")},
                       {"Checkpoint", fs::absolute(checkpoint_name(out_)).lexically_normal().string()}},
                      {},
                      ""};
    Section reconstructions{"Reconstructions", {}, {}, ""};
    reconstructions.tiles = {{text("The first ", pairs.size(), " test images, and below each what its ", positions(m_),
                                   " tokens make of it"),
                              std::move(pairs)}};
    const Section recipe{
        "Recipe",
        {{"Epochs", std::to_string(state_.recipe.epochs)},
         {"Batch", std::to_string(state_.recipe.batch)},
         {"Learning rates", text(shortest(m_.generator_rate), " of the generator, ", shortest(m_.discriminator_rate),
                                 " of the discriminator")},
         {"From step", text(m_.disc_start, " on the adversarial losses count, and the generator's rate ", "is ",
                            shortest(m_.later), " of that")},
         {"Seed", std::to_string(state_.recipe.seed)}},
        {},
        ""};
    Section machine{"Machine", machine_rows(), {}, ""};
    machine.rows.emplace_back("Kernels", on_gpu_ ? "CUDA" : m_.generator.isa());
    write_file(out_ / "report.html",
               html_report(m_.name, tested.nearness.words(),
                           {run,
                            {"Mean |x - y|", {}, {loss_panel(state_.curve, "Mean |x - y|", steps_of_epoch())}, ""},
                            reconstructions,
                            {"Codebook", {}, {code_usage_svg(tested.usage.counts)}, ""},
                            recipe,
                            machine,
                            {"Shapes", {}, {}, m_.summary ? m_.summary() : ""}}));
  }

  const Vqgan& m_;
  const Model model_;
  fs::path out_;
  bool on_gpu_;
  TrainingState state_;
  std::optional<FolderLock> lock_;
  AlternatingPhases phases_;
  Dataset train_, test_;
};

// ---- the other commands -------------------------------------------------------------------------------------------

/// The parameters that a file is asked for: of one of the generator alone, not those that judge its images.
std::vector<tessera_parameter> rows_of(const Vqgan& m, const fs::path& file) {
  std::vector<tessera_parameter> rows(m.generator.parameters.begin(), m.generator.parameters.end());
  const auto judges = [](std::string_view key) { return key.starts_with("loss.") || key.find(".loss.") != key.npos; };
  const SafetensorsHeader header = read_safetensors_header(InputFile(file));
  if (std::ranges::none_of(header.tensors, [&](const auto& tensor) { return judges(tensor.first); }))
    std::erase_if(rows, [&](const tessera_parameter& row) { return judges(row.name); });
  return rows;
}

/// Parameters that are to be used, as the generator's phase has them. `all`: those that judge images have to be there.
Floats parameters_from(const Vqgan& m, const fs::path& file, bool all) {
  Model model = checkpoint_of(m);
  std::vector<tessera_parameter> rows;
  if (!all) model.parameters = rows = rows_of(m, file);
  Floats parameters(static_cast<std::size_t>(model.parameter_floats));
  load_parameters(file, model, parameters.data(), std::cerr);
  return parameters;
}

/// Of which type published checkpoints are: counts are integers.
const char* counter_of(std::string_view key) {
  return key.ends_with(".num_batches_tracked") ? "I64" : key.ends_with(".initialized") ? "U8" : nullptr;
}

void export_to(const Vqgan& m, const Floats& parameters, const fs::path& from, const fs::path& path) {
  spare_models(path, Output::parameters, {from});
  Safetensors file;
  for (const tessera_parameter& row : m.generator.parameters) {
    const Shape shape = shape_of(row);
    const float* const at = parameters.data() + row.offset;
    Tensor tensor = Tensor::of(shape, std::span(at, static_cast<std::size_t>(elements(shape))));
    if (counter_of(row.name)) {
      const std::int64_t count = std::llround(at[0]);
      tensor = Tensor::of(shape, std::span(&count, 1));
      if (counter_of(row.name) == std::string_view("U8"))
        tensor = {"U8", shape, Bytes{static_cast<std::uint8_t>(count)}};
    }
    file.tensors[row.name] = std::move(tensor);
  }
  write_safetensors(path, file);
}

void import_from(const Vqgan& m, const fs::path& path, const fs::path& out, const std::vector<std::string>& skip) {
  const std::vector<tessera_parameter> rows = rows_of(m, path);  // what judges then starts anew
  const Model whole = checkpoint_of(m);
  Model model = whole;
  model.parameters = rows;
  Floats parameters(static_cast<std::size_t>(model.parameter_floats));
  if (m.generator.init(parameters.data(), 1)) fail("the parameters have no start");
  start_from(path, model, skip, parameters.data(), std::cerr);
  const FolderLock lock(out);
  spare_models(checkpoint_name(out), Output::parameters, {path});
  save_model(checkpoint_name(out), whole, parameters.data(), std::nullopt);
  std::cout << checkpoint_name(out) << " holds the parameters of " << path.string() << "\n";
}

void write_tokens(const Vqgan& m, const std::vector<std::string>& pictures, const Floats& parameters,
                  const fs::path& to, bool on_gpu) {
  spare_models(to, Output::other, {pictures.begin(), pictures.end()});
  const PackedPass encode = pass_of(m.encode, m.generator.parameters, parameters.data(), on_gpu);
  std::vector<std::int64_t> tokens;
  for (const std::string& picture : pictures)
    for (const std::int32_t token : tokens_of_numbers(encode(read_picture(m, picture), image_floats(m)), m.codes))
      tokens.push_back(token);
  Safetensors file;
  file.tensors["tokens"] = Tensor::of({std::ssize(pictures), positions(m)}, tokens);
  write_safetensors(to, file);
  std::cout << to.string() << " holds " << std::ssize(pictures) << " images of " << positions(m) << " tokens\n";
}

void draw_tokens(const Vqgan& m, const fs::path& from, const Floats& parameters, const fs::path& to, bool on_gpu) {
  const Safetensors file = read_safetensors(from);
  const Tensor& given = file.at("tokens");
  // Tokens of another grid can be as many as those of another number of images.
  if (given.shape.size() > 1 && elements(given.shape) != given.shape[0] * positions(m))
    fail(from.string(), " holds images of ", elements(given.shape) / std::max<std::int64_t>(given.shape[0], 1),
         " tokens, and those of ", m.name, " are of ", positions(m));
  if (given.is_real()) fail(from.string(), ": tokens are of type ", given.dtype, ", and I64, I32 or U8 is needed");
  const std::vector<std::int64_t> tokens = given.integers();
  std::vector<std::int32_t> narrow;
  for (const std::int64_t token : tokens)
    narrow.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(token, -1, INT32_MAX)));
  if (narrow.empty()) fail(from.string(), " holds no tokens");
  demand_tokens(narrow, positions(m), m.codes);
  const PackedPass decode = pass_of(m.decode, m.generator.parameters, parameters.data(), on_gpu);
  const Floats images = decode(Floats(narrow.begin(), narrow.end()), positions(m));
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(std::ssize(narrow) / positions(m))));
  write_sheet(m, to, images, columns, {from});
  std::cout << to.string() << " shows " << std::ssize(narrow) / positions(m) << " images\n";
}

void reconstruct_picture(const Vqgan& m, const fs::path& from, const Floats& parameters, const fs::path& to,
                         bool on_gpu) {
  const Floats picture = read_picture(m, from);
  const Floats made =
      pass_of(m.reconstruct, m.generator.parameters, parameters.data(), on_gpu)(picture, image_floats(m));
  Nearness nearness;
  nearness.add(picture, made);
  write_sheet(m, to, made, 1, {from});
  std::cout << nearness.words() << "\n";
}

void bench(const Vqgan& m, std::int64_t batch, std::int64_t runs, bool on_gpu) {
  AlternatingPhases phases(m.generator, m.discriminator, batch, on_gpu);
  phases.init(1);
  const Floats images(static_cast<std::size_t>(batch * image_floats(m)), 0.25F);
  const auto median = [&](const auto& work) {
    std::vector<double> seconds;
    for (std::int64_t i = 0; i <= runs; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      work(i + 1);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(seconds.begin() + 1, seconds.end());
    return fixed(1000 * seconds[1 + static_cast<std::size_t>(runs) / 2], 2);
  };
  std::cout << "kernels: " << (on_gpu ? "CUDA" : m.generator.isa()) << ", batch " << batch << "\n";
  std::cout << "training step  "
            << median([&](std::int64_t step) { phases.step(images.data(), batch, step, 1, {1e-6F, 1e-6F}); })
            << " ms\n";
  const auto time = [&](const char* name, const ForwardPass& pass, const Floats& inputs) {
    const PackedPass run = pass_of(pass, m.generator.parameters, phases.parameters(), on_gpu);
    const std::int64_t floats = static_cast<std::int64_t>(inputs.size()) / batch;
    std::cout << name << median([&](std::int64_t) { run(inputs, floats); }) << " ms\n";
  };
  time("encode         ", m.encode, images);
  time("reconstruct    ", m.reconstruct, images);
  time("decode         ", m.decode, Floats(static_cast<std::size_t>(batch * positions(m)), 0.0F));
}

int run(const Vqgan& m, int argc, char** argv) {
  CLI::App app(text("A VQGAN: images of ", printed({m.image_shape, m.image_shape + 3}), " as ", positions(m),
                    " tokens of ", m.codes, " codes"),
               m.name);
  app.require_subcommand(0, 1);
  add_version_flag(app, checkpoint_of(m));
  std::int64_t threads = 0;
  std::string device = "cpu";
  const auto command = [&](const char* name, const char* what, bool computes = true) {
    CLI::App* const made = app.add_subcommand(name, what);
    if (!computes) return made;
    made->add_option("--threads", threads, "The threads to use")
        ->check(in<std::int64_t>(1, most_threads))
        ->type_name("N");
    add_device_option(made, device);
    return made;
  };
  TrainFlags flags;
  const auto add_data = [&](CLI::App* to) {
    to->add_option("--data", flags.data, "A folder of images (default: built-in digits)")->type_name("DIR");
    to->add_option("--digits", flags.digits, "How many built-in training digits")
        ->check(in<std::int64_t>(1, most_digits))
        ->type_name("N");
    to->add_option("--limit", flags.limit, "Use only the first N images")
        ->check(in<std::int64_t>(1, most_images))
        ->type_name("N");
  };
  ParameterFile file;
  file.out = "run";
  CLI::App* const train = command("train", "Train both phases");
  train->add_option("--out", flags.out, "Folder for the run")->capture_default_str()->type_name("DIR");
  add_data(train);
  train->add_option("--epochs", flags.epochs, text("How often each image is seen (default: ", m.epochs, ")"))
      ->check(in<std::int64_t>(1, 1'000'000))
      ->type_name("N");
  train->add_option("--batch", flags.batch, text("Images of a step (default: ", m.batch, ")"))
      ->check(in<std::int64_t>(2, 1'000'000))
      ->type_name("N");
  train->add_option("--seed", flags.seed, "Of starting values and of the order of images (default: 1)")
      ->check(any_seed())
      ->type_name("N");
  train->add_option("--perceptual", flags.perceptual, "Weights of VGG16 and LPIPS, where the model has that loss")
      ->type_name("FILE");
  train->add_flag("--resume", flags.resume, "Go on with the run in --out");
  train->add_flag("--overwrite", flags.overwrite, "Start another in the place of the run in --out");

  CLI::App* const eval = command("eval", "MSE, PSNR, L1, codes used and their perplexity on the test images");
  add_checkpoint_options(eval, file);
  add_data(eval);
  fs::path from, to;
  std::vector<std::string> pictures;
  CLI::App* const reconstruct = command("reconstruct", "A picture through tokens, with MSE and PSNR");
  CLI::App* const encode = command("encode", "Make tokens of pictures");
  CLI::App* const decode = command("decode", "Draw the images that tokens stand for");
  CLI::App* const exported = command("export", "Write the parameters under their published keys", false);
  reconstruct->add_option("FILE", from, "A picture")->required()->type_name("");
  encode->add_option("FILE", pictures, "Pictures")->required()->type_name("");
  decode->add_option("FILE", from, "Tokens, as encode writes them")->required()->type_name("");
  for (CLI::App* const app_ : {reconstruct, encode, decode, exported}) {
    add_checkpoint_options(app_, file);
    app_->add_option("-o,--to", to, "The file to write")->required()->type_name("FILE");
  }
  CLI::App* const imported = command("import", "Make a checkpoint of a safetensors file with published keys", false);
  imported->add_option("FILE", from, "Parameters")->required()->type_name("");
  imported->add_option("--out", flags.out, "Folder for the checkpoint")->capture_default_str()->type_name("DIR");
  std::vector<std::string> skip;
  add_skip_option(imported, skip);
  CLI::App* const summary = command("summary", "Shapes, parameters and memory", false);
  CLI::App* const speed = command("bench", "Time a training step and the forward passes");
  std::int64_t batch = m.batch, runs = 5;
  speed->add_option("--batch", batch, "Images at once")
      ->capture_default_str()
      ->check(in<std::int64_t>(2, 65536))
      ->type_name("N");
  speed->add_option("--runs", runs, "Of which the median is told")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1000))
      ->type_name("N");

  if (const std::optional<int> ended = parsed(app, argc, argv, "train or reconstruct")) return *ended;
  check_environment();
  use_threads(threads);
  const bool on_gpu = flags.on_gpu = device == "cuda";
  if (on_gpu) {  // before anything is written
    const Model model = named(m.name, m.generator.cuda);
    Gpu{model};
  }
  if (*train) return Training(m, flags).run();
  if (*summary) std::cout << m.summary();
  if (*speed) bench(m, batch, runs, on_gpu);
  if (*imported) import_from(m, from, flags.out, skip);
  if (!*eval && !*reconstruct && !*encode && !*decode && !*exported) return 0;
  const Floats parameters = parameters_from(m, file.file(), exported->parsed());
  if (*eval) {
    DataChoice choice;
    choice.folder = flags.data.value_or("");
    choice.digits = flags.digits.value_or(choice.digits);
    choice.limit = flags.limit.value_or(0);
    const Dataset data = load(choice, Split::test, checkpoint_of(m), minus_one_to_one);
    std::cout << words(m, test(m, m.generator.parameters, parameters.data(), data, on_gpu)) << " on "
              << grouped(data.size()) << " test images (" << data.source << ")\n";
  }
  if (*reconstruct) reconstruct_picture(m, from, parameters, to, on_gpu);
  if (*encode) write_tokens(m, pictures, parameters, to, on_gpu);
  if (*decode) draw_tokens(m, from, parameters, to, on_gpu);
  if (*exported) export_to(m, parameters, file.file(), to);
  return 0;
}

}  // namespace

int vqgan_program(const Vqgan& model, int argc, char** argv) {
  return ending_in_a_sentence(model.name, [&] { return run(model, argc, argv); });
}

}  // namespace tessera::runtime
