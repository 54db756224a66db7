#include "runtime/taming_program.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/cli/help.hpp"
#include "runtime/cli/unknown_word.hpp"
#include "runtime/command.hpp"
#include "runtime/ending.hpp"
#include "runtime/environment.hpp"
#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/folder_lock.hpp"
#include "runtime/image.hpp"
#include "runtime/numbers.hpp"
#include "runtime/picture_sheet.hpp"
#include "runtime/progress.hpp"
#include "runtime/ranges.hpp"
#include "runtime/run_start.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/taming_keys.hpp"
#include "runtime/taming_on_gpu.hpp"
#include "runtime/taming_pictures.hpp"
#include "runtime/taming_run.hpp"
#include "runtime/taming_training.hpp"

namespace tessera::runtime {

namespace {

namespace fs = std::filesystem;

/// A run, or a file of parameters, as it is asked for on the command line.
struct RunFile {
  fs::path out = "gpt", vqgan;
};

struct GptSampling {
  RunFile run;
  fs::path complete, sheet;
  PictureDrawing drawing{};
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

/// The transformer's parameters, packed.
struct Packed {
  Arena parameters, numbers;

  Packed(const Model& gpt, Arena from)
      : parameters(std::move(from)), numbers(Arena::of_floats(gpt.packed_forward_floats + 1, gpt.alignment)) {
    if (const int code = gpt.pack_forward(parameters.floats(), numbers.floats())) fail(gpt.name, ": ", gpt.error(code));
  }
};

int sample(const Taming& taming, const GptSampling& options) {
  const fs::path file = run_file(options.run.out);
  PictureDrawing drawing = options.drawing;
  if (drawing.of_class && !taming.classes) fail("--class: ", taming.transformer.model.name, " is not trained by class");
  if (drawing.of_class && (*drawing.of_class < 0 || *drawing.of_class >= taming.classes))
    fail("--class ", *drawing.of_class, ": there are the classes 0 to ", taming.classes - 1);
  drawing.grid = options.size.empty() ? taming.transformer.tokens.window : grid_of(options.size);
  if (!options.complete.empty() && !options.size.empty())
    fail("--complete and --size: what is completed is as large as what was trained on");
  check_target(options.sheet);
  spare_models(options.sheet, Output::other, {options.complete});
  fs::path vqgan;
  const PackedPass decode = decoder_of(taming, file, options.run.vqgan, vqgan);
  const Packed gpt(taming.transformer.model, parameters_of(taming.transformer.model, file));
  if (!options.complete.empty())
    drawing.given = tokens_of_half(taming, pass_from(taming.encode, vqgan), options.complete);
  std::vector<float> pictures;
  {
    Counter counter("tokens", drawing.count * drawing.grid.rows * drawing.grid.columns);
    pictures = drawn_pictures(taming, decode, gpt.parameters.floats(), gpt.numbers.floats(), drawing,
                              [&](std::int64_t tokens) { counter.add(tokens); });
  }
  const auto& [channels, height, width] = taming.image_shape;
  const Grid& window = taming.transformer.tokens.window;
  const std::int64_t shape[3] = {channels, height / window.rows * drawing.grid.rows,
                                 width / window.columns * drawing.grid.columns};
  const auto columns = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(drawing.count))));
  const Bytes png = picture_sheet(pictures, shape, columns, 0);
  const std::span<const std::uint8_t> part(png);
  write_file(options.sheet, std::span(&part, 1));
  std::cout << options.sheet.string() << ": " << drawing.count << " pictures" << std::endl;
  return 0;
}

int evaluate(const Taming& taming, const RunFile& run, const DataChoice& choice, bool on_gpu) {
  std::optional<TamingOnGpu> gpu;
  if (on_gpu) gpu.emplace(taming, 0);
  const fs::path file = run_file(run.out);
  fs::path vqgan;
  decoder_of(taming, file, run.vqgan, vqgan);  // throws where the codebook is another
  const Packed gpt(taming.transformer.model, parameters_of(taming.transformer.model, file));
  const Dataset images = images_for(taming, choice, Split::test);
  const Tokens tokens = tokens_of(taming, pass_from(taming.encode, vqgan, on_gpu), images, "test");
  if (gpu) gpu->load(gpt.parameters.floats(), nullptr);
  const double nats =
      gpu ? gpu->nats_a_token(tokens) : nats_a_token(taming, gpt.parameters.floats(), gpt.numbers.floats(), tokens);
  if (!std::isfinite(nats)) fail("the loss of a token is not a number: these parameters cannot be used");
  std::cout << "loss " << fixed(nats, 4) << " nats a token on " << grouped(images.size()) << " test images ("
            << images.source
            << "); even chances: " << fixed(std::log(static_cast<double>(taming.transformer.tokens.codes)), 4)
            << std::endl;
  return 0;
}

int export_keys(const Taming& taming, const fs::path& out, const fs::path& to) {
  const Arena parameters = parameters_of(taming.transformer.model, run_file(out));
  spare_models(to, Output::parameters, {run_file(out)});
  Safetensors file;
  put(file, taming.transformer.model, "", parameters.floats());
  write_safetensors(to, as_taming(std::move(file)));
  std::cout << to.string() << std::endl;
  return 0;
}

int import_keys(const Taming& taming, const fs::path& from, const RunFile& run) {
  const Arena parameters = parameters_of(taming.transformer.model, from);
  demand_text("--vqgan", fs::absolute(run.vqgan));
  const FolderLock lock(run.out);
  const fs::path to = run_file(run.out);
  spare_models(to, Output::parameters, {from, run_file(run.vqgan)});
  save_gpt(taming, to, parameters.floats(), run_file(run.vqgan));
  std::cout << to.string() << " holds the parameters of " << from.string() << std::endl;
  return 0;
}

/// Seconds of a run, as the median of so many, after one that does not count.
template <class Work>
double median_seconds(std::int64_t runs, const Work& work) {
  std::vector<double> seconds;
  for (std::int64_t i = 0; i <= runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return seconds[1 + place(runs / 2)];
}

/// The training step, and a token: the mean over an image.
int bench(const Taming& taming, std::int64_t batch, std::int64_t runs) {
  const Model& gpt = taming.transformer.model;
  const auto arena = [&](std::int64_t floats) { return Arena::of_floats(floats + 1, gpt.alignment); };
  const auto check = [&](int code) {
    if (code) fail(gpt.name, ": ", gpt.error(code));
  };
  const std::int64_t positions = taming.transformer.tokens.window.rows * taming.transformer.tokens.window.columns;
  const Arena parameters = arena(gpt.parameter_floats), packed = arena(gpt.packed_floats),
              gradients = arena(gpt.parameter_floats), optimizer = arena(gpt.optimizer_floats());
  check(gpt.init(parameters.floats(), 1));
  check(gpt.pack(parameters.floats(), packed.floats()));
  std::cout << "kernels: " << gpt.isa() << std::endl;
  {
    const std::int64_t at_once = gpt.images_at_once(batch);
    const Arena scratch(gpt.train_scratch_bytes(at_once), gpt.alignment);
    std::vector<std::int32_t> tokens(place(batch * positions));
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<std::int32_t>(i % place(taming.transformer.tokens.codes));
    std::vector<float> outputs(tokens.size() * place(taming.transformer.tokens.codes));
    float loss = 0;
    std::int64_t step = 0;
    const double seconds = median_seconds(runs, [&] {
      check(taming.transformer.train_step(parameters.floats(), packed.floats(), gradients.floats(), optimizer.floats(),
                                          tokens.data(), tokens.data(), batch, at_once, 1, ++step, 1e-6F,
                                          outputs.data(), &loss, scratch.data()));
    });
    std::cout << "training step of " << batch << "  " << fixed(1e3 * seconds, 2) << " ms" << std::endl;
  }
  const Packed forward(gpt, [&] {
    Arena own = arena(gpt.parameter_floats);
    check(gpt.init(own.floats(), 1));
    return own;
  }());
  for (const std::int64_t images : {std::int64_t{1}, std::int64_t{16}, batch}) {
    const Drawing drawing{.grid = taming.transformer.tokens.window,
                          .start = std::vector<std::int32_t>(place(images)),
                          .given = {},
                          .uniforms = uniforms_of(1, 0)};
    const double seconds = median_seconds(runs, [&] {
      draw_tokens(taming.transformer.tokens, forward.parameters.floats(), forward.numbers.floats(), drawing);
    });
    std::cout << "a token of " << padded(std::to_string(images), 4) << "  "
              << fixed(1e3 * seconds / static_cast<double>(positions), 3) << " ms, "
              << grouped(std::llround(static_cast<double>(images * positions) / seconds)) << " tokens/s" << std::endl;
  }
  return 0;
}

int run(const Taming& taming, int argc, char** argv) {
  CLI::App app("Trains a transformer on the tokens of a VQGAN, and draws pictures with it.",
               taming.transformer.model.name);
  app.require_subcommand(0, 1);
  add_version_flag(app, taming.transformer.model);
  std::int64_t threads = 0;
  const auto command = [&](const char* name, const char* what, bool computes = true) {
    CLI::App* const made = app.add_subcommand(name, what);
    if (computes)
      made->add_option("--threads", threads, "The threads to use")
          ->check(in<std::int64_t>(1, most_threads))
          ->type_name("N");
    return made;
  };
  GptTraining training{.vqgan = {},
                       .out = "gpt",
                       .data = {},
                       .steps = taming.steps,
                       .batch = taming.batch,
                       .learning_rate = taming.learning_rate};
  CLI::App* const train = command("train", "Encode the data once, and train on its tokens");
  train->add_option("--vqgan", training.vqgan, "A run of the VQGAN, or a file with its parameters")
      ->required()
      ->type_name("DIR");
  train->add_option("--out", training.out, "The folder of the run")->capture_default_str()->type_name("DIR");
  train->add_option("--steps", training.steps, "Steps")
      ->check(in<std::int64_t>(1, most_steps))
      ->type_name("N")
      ->capture_default_str();
  train->add_option("--batch", training.batch, "Images of a step")
      ->check(in<std::int64_t>(1, std::int64_t{1} << 16))
      ->type_name("N")
      ->capture_default_str();
  train->add_option("--learning-rate", training.learning_rate, "Of AdamW")
      ->check(in<double>(0, most_learning_rate))
      ->type_name("RATE")
      ->capture_default_str();
  train->add_option("--keep", training.keep, "The chance that a token is read as it is, and not a random one for it")
      ->check(in<double>(0, 1))
      ->type_name("P")
      ->capture_default_str();
  train->add_option("--seed", training.seed, "Of starting values and of the order of images")
      ->check(any_seed())
      ->type_name("N")
      ->capture_default_str();
  train->add_flag("--resume", training.resume, "Go on with the run in --out");

  GptSampling sampling;
  PictureDrawing& drawing = sampling.drawing;
  RunFile& file = sampling.run;
  CLI::App* const draw = command("sample", "Draw pictures");
  CLI::App* const eval = command("eval", "The loss of a token on test images");
  CLI::App* const imported = command("import", "Make a run of a safetensors file with published keys", false);
  CLI::App* const exported = command("export", "Write the parameters with published keys", false);
  for (CLI::App* const data : {train, eval}) {
    data->add_option("--data", training.data.folder, "A folder with a data set; without it built-in digits")
        ->type_name("DIR");
    data->add_option("--images", training.data.limit, "Only so many")
        ->check(in<std::int64_t>(1, most_digits))
        ->type_name("N");
  }
  for (CLI::App* const reads : {draw, eval, exported})
    reads->add_option("--out", file.out, "A run, or a file of parameters")->capture_default_str()->type_name("DIR");
  for (CLI::App* const reads : {draw, eval})
    reads->add_option("--vqgan", file.vqgan, "Where the VQGAN is, if not where training found it")->type_name("DIR");
  draw->add_option("--class", drawing.of_class, "Of this class; without it of all in turn")->type_name("CLASS");
  draw->add_option("--count", drawing.count, "Pictures")
      ->check(in<std::int64_t>(1, 4096))
      ->type_name("N")
      ->capture_default_str();
  draw->add_option("--topk", drawing.top_k, "Of the most probable codes alone; 0: of all")
      ->type_name("K")
      ->capture_default_str();
  draw->add_option("--topp", drawing.top_p, "Of the smallest set whose probability exceeds it")
      ->type_name("P")
      ->capture_default_str();
  draw->add_option("--temperature", drawing.temperature, "Divides the logits")->type_name("T")->capture_default_str();
  draw->add_option("--seed", drawing.seed, "Of what is drawn")
      ->check(any_seed())
      ->type_name("N")
      ->capture_default_str();
  draw->add_flag("--greedy", drawing.greedy, "Always the most probable code");
  draw->add_option("--complete", sampling.complete, "A picture whose upper half is kept")->type_name("FILE");
  draw->add_option("--size", sampling.size, "Rows and columns of tokens, as 10x12, through a sliding window")
      ->type_name("HxW");
  draw->add_option("-o", sampling.sheet, "The PNG file")->required()->type_name("FILE");
  fs::path from, to;
  imported->add_option("FILE", from, "Parameters")->required()->type_name("");
  imported->add_option("--vqgan", file.vqgan, "The VQGAN of its tokens: a run, or a file of parameters")
      ->required()
      ->type_name("DIR");
  imported->add_option("--out", file.out, "The folder of the run")->capture_default_str()->type_name("DIR");
  exported->add_option("-o", to, "The safetensors file")->required()->type_name("FILE");
  CLI::App* const summary = command("summary", "Shapes, parameters and memory", false);
  CLI::App* const speed = command("bench", "Time a training step and a token");
  std::int64_t batch = taming.batch, runs = 5;
  speed->add_option("--batch", batch, "Images of a step")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 4096))
      ->type_name("N");
  speed->add_option("--runs", runs, "Of which the median is told")
      ->capture_default_str()
      ->check(in<std::int64_t>(1, 1000))
      ->type_name("N");
  std::string device = "cpu";
  for (CLI::App* const computes : {train, eval, draw}) add_device_option(computes, device);
  if (const std::optional<int> ended = parsed(app, argc, argv, "train or sample")) return *ended;
  check_environment();
  use_threads(threads);
  const bool on_gpu = training.on_gpu = device == "cuda";
  if (on_gpu && *draw)
    fail("--device cuda: a step of one token has no kernels for GPUs, pictures are drawn on the CPU only");
  if (training.data.folder.empty() && training.data.limit) training.data.digits = std::exchange(training.data.limit, 0);
  if (*train) return train_gpt(taming, training);
  if (*draw) return sample(taming, sampling);
  if (*eval) return evaluate(taming, file, training.data, on_gpu);
  if (*imported) return import_keys(taming, from, file);
  if (*exported) return export_keys(taming, file.out, to);
  if (*speed) return bench(taming, batch, runs);
  if (*summary) std::cout << taming.transformer.model.summary;
  return 0;
}

}  // namespace

int taming_program(const Taming& taming, int argc, char** argv) {
  return ending_in_a_sentence(taming.transformer.model.name, [&] { return run(taming, argc, argv); });
}

}  // namespace tessera::runtime
