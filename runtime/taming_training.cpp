#include "runtime/taming_training.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/batches.hpp"
#include "runtime/curve.hpp"
#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/html.hpp"
#include "runtime/matching.hpp"
#include "runtime/metadata.hpp"
#include "runtime/numbers.hpp"
#include "runtime/philox.hpp"
#include "runtime/picture_report.hpp"
#include "runtime/progress.hpp"
#include "runtime/run_start.hpp"
#include "runtime/taming_on_gpu.hpp"
#include "runtime/taming_pictures.hpp"
#include "runtime/taming_run.hpp"

namespace tessera::runtime {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t steps_of_row = 100, steps_between_checkpoints = 500;

/// A number that is read back as it was.
std::string exact(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

class Trainer {
 public:
  Trainer(const Taming& taming, const GptTraining& options)
      : taming_(taming),
        options_(options),
        positions_(taming.transformer.tokens.window.rows * taming.transformer.tokens.window.columns),
        parameters_(arena(taming.transformer.model.parameter_floats)),
        packed_(arena(taming.transformer.model.packed_floats + 1)),
        gradients_(arena(taming.transformer.model.parameter_floats)),
        optimizer_(arena(taming.transformer.model.optimizer_floats())) {}

  int run() {
    if (options_.on_gpu) gpu_.emplace(taming_, options_.batch);
    const FolderLock lock(options_.out);
    const fs::path path = run_file(options_.out);
    if (!options_.resume && fs::exists(path))
      fail(path.string(), " is there already: --resume goes on with it, another --out begins anew");
    const fs::path vqgan = run_file(options_.vqgan);
    demand_text("--vqgan", fs::absolute(vqgan));
    demand_text("--data", options_.data.folder);
    const PackedPass encode = pass_from(taming_.encode, vqgan, options_.on_gpu),
                     decode = pass_from(taming_.decode, vqgan);
    codebook_ = codebook_hash(taming_.decode, decode);
    if (options_.resume)
      resume(path);
    else
      check(taming_.transformer.model.init(parameters_.floats(), options_.seed));
    check(taming_.transformer.model.pack(parameters_.floats(), packed_.floats()));
    if (gpu_) gpu_->load(parameters_.floats(), optimizer_.floats());
    const Dataset images = images_for(taming_, options_.data, Split::train);
    const Tokens training = tokens_of(taming_, encode, images, "training");
    const Tokens test = tokens_of(taming_, encode, images_for(taming_, options_.data, Split::test), "test");
    const std::int64_t batch = std::min(options_.batch, training.images);
    {
      Counter counter("training steps", options_.steps - step_);
      while (step_ < options_.steps) {
        sum_ += step(training, batch);
        ++summed_;
        counter.add(1);
        if (step_ % steps_of_row && step_ < options_.steps) continue;
        tell(training.images / batch, test);
        if (step_ % steps_between_checkpoints == 0 || step_ == options_.steps) save(path, vqgan);
      }
    }
    bring();
    report(decode, images.source, training, test);
    std::cout << path.string() << "\n" << (options_.out / "report.html").string() << std::endl;
    return 0;
  }

 private:
  Arena arena(std::int64_t floats) const { return Arena::of_floats(floats, taming_.transformer.model.alignment); }
  void check(int code) const {
    if (code) fail(taming_.transformer.model.name, ": ", taming_.transformer.model.error(code));
  }

  /// One on the images whose turn it is: the order of an epoch depends on the seed alone.
  double step(const Tokens& training, std::int64_t batch) {
    const std::int64_t of_epoch = training.images / batch, epoch = step_ / of_epoch, at = step_ % of_epoch;
    if (at == 0 || order_.empty()) order_ = shuffled(training.images, options_.seed, epoch);
    std::vector<std::int32_t> read, wanted;
    for (std::int64_t i = at * batch; i < (at + 1) * batch; ++i) {
      const std::int64_t first = order_[place(i)] * positions_;
      read.insert(read.end(), training.read.begin() + first, training.read.begin() + first + positions_);
      wanted.insert(wanted.end(), training.wanted.begin() + first, training.wanted.begin() + first + positions_);
    }
    replace(read, static_cast<std::uint64_t>(step_) * static_cast<std::uint64_t>(batch));
    if (gpu_) {
      ++step_;
      return static_cast<double>(
          gpu_->step(read, wanted, step_, options_.seed, static_cast<float>(options_.learning_rate)));
    }
    const std::int64_t at_once = taming_.transformer.model.images_at_once(batch);
    outputs_.resize(place(batch * positions_ * taming_.transformer.tokens.codes));
    if (!scratch_)
      scratch_.emplace(taming_.transformer.model.train_scratch_bytes(at_once), taming_.transformer.model.alignment);
    float loss = 0;
    ++step_;
    check(taming_.transformer.train_step(parameters_.floats(), packed_.floats(), gradients_.floats(),
                                         optimizer_.floats(), read.data(), wanted.data(), batch, at_once, options_.seed,
                                         step_, static_cast<float>(options_.learning_rate), outputs_.data(), &loss,
                                         scratch_->data()));
    if (!std::isfinite(loss)) fail("step ", step_, ": the loss is not a number");
    return static_cast<double>(loss);
  }

  /// Random codes in the place of some of the tokens that are read, never of the first one; `first` counts the images
  /// of the steps before.
  void replace(std::vector<std::int32_t>& read, std::uint64_t first) const {
    if (options_.keep >= 1) return;
    for (std::size_t i = 0; i < read.size(); i += place(positions_)) {
      Random random(options_.seed, replacing, first + i / place(positions_));
      for (std::size_t t = 1; t < place(positions_); ++t) {
        const bool kept = random.uniform() < options_.keep;
        const std::uint32_t code = random.below(static_cast<std::uint32_t>(taming_.transformer.tokens.codes));
        if (!kept) read[i + t] = static_cast<std::int32_t>(code);
      }
    }
  }

  double nats(const Tokens& test) const {
    return gpu_ ? gpu_->nats_a_token(test) : nats_a_token(taming_, parameters_.floats(), packed_.floats(), test);
  }
  /// Parameters and moments from the GPU, for a file or for what the CPU draws.
  void bring() const {
    if (!gpu_) return;
    gpu_->store(parameters_.floats(), optimizer_.floats());
    check(taming_.transformer.model.pack(parameters_.floats(), packed_.floats()));
  }

  void tell(std::int64_t steps_of_epoch, const Tokens& test) {
    const double loss = sum_ / static_cast<double>(summed_);
    const double of_test = nats(test);
    if (!std::isfinite(loss) || !std::isfinite(of_test)) fail("step ", step_, ": the loss is not a number");
    std::cout << "step " << step_ << "/" << options_.steps << "  loss " << fixed(loss, 4) << "  test "
              << fixed(of_test, 4) << " nats a token" << std::endl;
    if (step_ % steps_of_row) return;  // the last one, after which a longer run goes on
    curve_.push_back({step_, (step_ - 1) / steps_of_epoch + 1, rounded(loss), 0, rounded(of_test), std::nullopt});
    sum_ = 0;
    summed_ = 0;
  }

  void save(const fs::path& path, const fs::path& vqgan) const {
    bring();
    const std::string broken = first_not_finite(taming_.transformer.model, parameters_.floats());
    if (!broken.empty())
      fail("training diverged: after step ", step_, " some parameters are not numbers, first ", broken);
    Safetensors file;
    put(file, taming_.transformer.model, "", parameters_.floats());
    for (std::size_t i = 0; i < taming_.transformer.model.optimizer_state.size(); ++i)
      put(file, taming_.transformer.model, taming_.transformer.model.optimizer_state[i],
          optimizer_.floats() + static_cast<std::int64_t>(i) * taming_.transformer.model.parameter_floats);
    file.metadata = options_.settings();
    file.metadata.insert({{"codebook", codebook_},
                          {"vqgan", fs::absolute(vqgan).string()},
                          {"step", std::to_string(step_)},
                          {"loss sum", exact(sum_)},
                          {"losses summed", std::to_string(summed_)},
                          {"curve", curve_csv(curve_)}});
    write_safetensors(path, file);
  }

  void resume(const fs::path& path) {
    const Safetensors file = read_safetensors(path);
    if (metadata_of(file, "codebook") != codebook_)
      fail(path.string(), ": was trained on another codebook than that of ", options_.vqgan.string());
    for (const auto& [what, value] : options_.settings())
      if (metadata_of(file, what) != value)
        fail(path.string(), ": its ", what, " is ", printable(metadata_of(file, what)), ", not ", printable(value));
    Matching matching(file, taming_.transformer.model);
    matching.take("", parameters_.floats());
    for (std::size_t i = 0; i < taming_.transformer.model.optimizer_state.size(); ++i)
      matching.take(taming_.transformer.model.optimizer_state[i],
                    optimizer_.floats() + static_cast<std::int64_t>(i) * taming_.transformer.model.parameter_floats);
    matching.finish();
    read_progress(file);
  }

  /// How far the run is: a row of the curve for each hundred steps, and the losses of the steps since.
  void read_progress(const Safetensors& file) {
    constexpr double largest = 1e300;
    const Metadata metadata(file);
    step_ = metadata.number<std::int64_t>("step", 0, most_steps);
    summed_ = metadata.number<std::int64_t>("losses summed", 0, steps_of_row - 1);
    metadata.demand(summed_ == step_ % steps_of_row, "losses summed");
    sum_ = metadata.number("loss sum", 0.0, largest);
    metadata.demand(summed_ > 0 || sum_ == 0, "loss sum");
    curve_ = parse_curve_csv(metadata.text("curve"), file.where);
    metadata.demand(std::ssize(curve_) == step_ / steps_of_row, "curve");
    std::int64_t step = 0, epoch = 1;
    for (const CurveRow& row : curve_) {
      step += steps_of_row;
      metadata.demand(row.step == step && row.epoch >= epoch && row.epoch <= step && row.train_loss >= 0 &&
                          row.train_loss <= largest && row.test_loss && std::isfinite(*row.test_loss),
                      "curve");
      epoch = row.epoch;
    }
  }

  void report(const PackedPass& decode, const std::string& source, const Tokens& training, const Tokens& test) const {
    constexpr std::int64_t of_each = 12;
    const std::int64_t classes = std::max<std::int64_t>(taming_.classes, 1);
    const double loss = nats(test);
    Section samples{"Samples", {}, {}, ""};
    for (std::int64_t c = 0; c < classes; ++c) {
      PictureDrawing drawing{.grid = taming_.transformer.tokens.window, .count = of_each, .seed = options_.seed};
      if (taming_.classes) drawing.of_class = c;
      drawing.seed += static_cast<std::uint64_t>(c);
      samples.tiles.push_back(
          {taming_.classes ? text("Class ", c) : "Drawn",
           picture_tiles(drawn_pictures(taming_, decode, parameters_.floats(), packed_.floats(), drawing),
                         taming_.image_shape)});
    }
    const Section run{
        "Run",
        {{"Data",
          text(grouped(training.images), " training and ", grouped(test.images), " test images (", source, ")")},
         {"Steps", grouped(step_)},
         {"Loss", text(fixed(loss, 4), " nats a token on test images; even chances: ",
                       fixed(std::log(static_cast<double>(taming_.transformer.tokens.codes)), 4))},
         {"Tokens", text(taming_.transformer.tokens.window.rows, " x ", taming_.transformer.tokens.window.columns,
                         " an image, of ", taming_.transformer.tokens.codes, " codes")},
         {"Codebook", codebook_}},
        {},
        ""};
    Section recipe{"Recipe", {}, {}, ""};
    for (const auto& [what, value] : options_.settings()) recipe.rows.emplace_back(what, value);
    Section machine{"Machine", machine_rows(), {}, ""};
    machine.rows.emplace_back("Kernels", gpu_ ? "CUDA" : taming_.transformer.model.isa());
    std::vector<Section> sections{run};
    const std::int64_t batch = std::min(options_.batch, training.images);
    if (!curve_.empty())
      sections.push_back({"Curve", {}, {loss_panel(curve_, "Nats a token", training.images / batch)}, ""});
    sections.insert(sections.end(), {samples, recipe, machine});
    sections.push_back({"Shapes", {}, {}, taming_.transformer.model.summary});
    write_file(options_.out / "report.html",
               html_report(taming_.transformer.model.name, text(fixed(loss, 4), " nats a token"), sections));
  }

  const Taming& taming_;
  const GptTraining& options_;
  const std::int64_t positions_;
  Arena parameters_, packed_, gradients_, optimizer_;
  std::optional<Arena> scratch_;
  std::optional<TamingOnGpu> gpu_;
  std::vector<float> outputs_;
  std::vector<std::int32_t> order_;
  std::string codebook_;
  std::int64_t step_ = 0, summed_ = 0;
  double sum_ = 0;  ///< of the losses since the last row of the curve
  Curve curve_;
};

}  // namespace

std::map<std::string, std::string> GptTraining::settings() const {
  return {{"batch", std::to_string(batch)},
          {"seed", std::to_string(seed)},
          {"learning rate", shortest(learning_rate)},
          {"keep", shortest(keep)},
          {"data", data.folder.empty() ? "built-in digits" : fs::absolute(data.folder).string()},
          {"number of digits", std::to_string(data.digits)},
          {"limit of images", std::to_string(data.limit)}};
}

int train_gpt(const Taming& taming, const GptTraining& options) { return Trainer(taming, options).run(); }

void save_gpt(const Taming& taming, const fs::path& path, const float* parameters, const fs::path& vqgan) {
  Safetensors file;
  put(file, taming.transformer.model, "", parameters);
  file.metadata = {{"codebook", codebook_hash(taming.decode, pass_from(taming.decode, vqgan))},
                   {"vqgan", fs::absolute(vqgan).string()}};
  write_safetensors(path, file);
}

}  // namespace tessera::runtime
