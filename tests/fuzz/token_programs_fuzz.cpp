// No tokens, checkpoint of a VQGAN or of a transformer over its tokens may do more than draw an Error from the programs
// around them: whatever is accepted is decoded, evaluated, exported, imported, drawn from and trained on. The models
// are written by hand, and stop the fuzzer where a token is none of the codes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/taming_program.hpp"
#include "runtime/vqgan.hpp"
#include "tests/fuzz/called_program.hpp"
#include "tests/fuzz/safetensors_mutator.hpp"

namespace {

using namespace tessera::runtime;

constexpr std::int64_t codes = 16, positions = 4, pixels = 28 * 28;

const char* const fields[] = {"format",         "model",         "declaration_hash",
                              "batch",          "epochs",        "digits",
                              "limit",          "data",          "fingerprint",
                              "step",           "epoch",         "position",
                              "loss_sum",       "seen",          "correct",
                              "batches",        "best_epoch",    "best_loss",
                              "curve",          "learning_rate", "seed",
                              "codebook",       "losses summed", "loss sum",
                              "learning rate",  "keep",          "number of digits",
                              "limit of images"};

std::int64_t no_bytes(std::int64_t) { return 64; }
const char* error(int) { return "no such code"; }
const char* isa() { return "scalar"; }
const char* summary() { return "images [B, 1, 28, 28]\n"; }
int pack(const float*, float*) { return 0; }

void demand_code(double token) {
  if (!(token >= 0 && token < static_cast<double>(codes)) || token != std::floor(token)) std::abort();
}

// ---- the VQGAN ----------------------------------------------------------------------------------------------------

constexpr std::int64_t vqgan_floats = 48;
const tessera_parameter vqgan_parameters[] = {
    {"quantize.embedding.weight", 2, 1, {codes, 1}, 0, "[codes, 1]"},
    {"encoder.norm.num_batches_tracked", 0, 0, {}, 16, "[]"},
    {"loss.discriminator.bias", 1, 0, {1}, 32, "[1]"},
};
const char* const generator_losses[] = {"rec_loss", "d_weight"};
const char* const discriminator_losses[] = {"disc_loss"};

int start(float* parameters, std::uint64_t seed) {
  std::fill_n(parameters, vqgan_floats, 0.0F);
  for (std::int64_t i = 0; i < codes; ++i)
    parameters[i] = static_cast<float>(i + static_cast<std::int64_t>(seed % 7)) / 16;
  return 0;
}

/// A token of each quarter: how bright its first pixel is.
int encode(const float*, const float*, const float* images, std::int64_t batch, float* outputs, void*) {
  for (std::int64_t i = 0; i < batch * positions; ++i) {
    const float pixel = images[i / positions * pixels + i % positions * (pixels / positions)];
    outputs[i] = std::floor((std::clamp(pixel, -1.0F, 1.0F) + 1) / 2 * static_cast<float>(codes - 1));
  }
  return 0;
}

int reconstruct(const float* parameters, const float*, const float* images, std::int64_t batch, float* outputs, void*) {
  std::transform(images, images + batch * pixels, outputs, [&](float pixel) { return pixel + parameters[0]; });
  return 0;
}

int decode(const float* parameters, const float*, const float* tokens, std::int64_t batch, float* outputs, void*) {
  for (std::int64_t i = 0; i < batch * positions; ++i) {
    demand_code(static_cast<double>(tokens[i]));
    std::fill_n(outputs + i * (pixels / positions), pixels / positions, parameters[static_cast<int>(tokens[i])]);
  }
  return 0;
}

template <int Phase>
int loss_and_gradients(const float* parameters, const float*, const float* images, const float*, std::int64_t batch,
                       std::int64_t, std::uint64_t, std::int64_t, float* outputs, float* losses, float* loss,
                       float* gradients, void*) {
  if (Phase == 0) encode(parameters, nullptr, images, batch, outputs, nullptr);
  *loss = losses[0] = parameters[0] + images[0];
  if (Phase == 0) losses[1] = 1;
  std::fill_n(gradients, vqgan_floats, 0.5F);
  return 0;
}

int update(float* parameters, float*, const float* gradients, float* optimizer, std::int64_t, float learning_rate) {
  for (std::int64_t i = 0; i < vqgan_floats; ++i) {
    optimizer[i] = 0.9F * optimizer[i] + gradients[i];
    parameters[i] -= learning_rate * optimizer[i];
  }
  return 0;
}

ForwardPass pass(std::int64_t outputs,
                 int (*forward)(const float*, const float*, const float*, std::int64_t, float*, void*)) {
  return {.parameters = vqgan_parameters,
          .parameter_floats = vqgan_floats,
          .output_floats = outputs,
          .scratch_bytes = no_bytes,
          .error = error,
          .pack = pack,
          .forward = forward};
}

template <int Phase>
TrainingPhase phase(const char* name, std::span<const char* const> losses) {
  return {.name = name,
          .declaration_hash = 1 + Phase,
          .parameters = vqgan_parameters,
          .losses = losses,
          .parameter_floats = vqgan_floats,
          .optimizer_floats = 2 * vqgan_floats,
          .image_floats = pixels,
          .output_floats = positions,
          .scratch_bytes = no_bytes,
          .error = error,
          .isa = isa,
          .init = start,
          .pack = pack,
          .loss_and_gradients = loss_and_gradients<Phase>,
          .update = update};
}

int vqgan_main(int argc, char** argv) {
  const Vqgan model{.name = "tiny_vqgan",
                    .generator = phase<0>("generator", generator_losses),
                    .discriminator = phase<1>("discriminator", discriminator_losses),
                    .encode = pass(positions, encode),
                    .reconstruct = pass(pixels, reconstruct),
                    .decode = pass(pixels, decode),
                    .image_shape = {1, 28, 28},
                    .tokens = {2, 2},
                    .codes = codes,
                    .batch = 4,
                    .summary = summary};
  return vqgan_program(model, argc, argv);
}

// ---- the transformer ----------------------------------------------------------------------------------------------

constexpr std::int64_t gpt_floats = 48, head = 32;
const tessera_parameter gpt_parameters[] = {
    {"tok_emb.weight", 2, 1, {codes, 1}, 0, "[codes, 1]"},
    {"pos_emb", 3, 0, {1, positions, 1}, 16, "[1, T, 1]"},
    {"head.weight", 2, 1, {codes, 1}, head, "[codes, 1]"},
};

int gpt_start(float* parameters, std::uint64_t seed) {
  for (std::int64_t i = 0; i < gpt_floats; ++i) parameters[i] = static_cast<float>(seed % 5) / 8;
  return 0;
}

void logits(const float* parameters, const std::int32_t* tokens, std::int64_t count, float* outputs) {
  for (std::int64_t i = 0; i < count; ++i) {
    demand_code(tokens[i]);
    for (std::int64_t c = 0; c < codes; ++c) outputs[i * codes + c] = parameters[tokens[i]] * parameters[head + c];
  }
}

int step(const float* parameters, const float*, float*, std::int64_t position, const std::int32_t* tokens,
         std::int64_t batch, float* outputs, void*) {
  if (position < 0 || position >= positions) std::abort();
  logits(parameters, tokens, batch, outputs);
  return 0;
}

int evaluate(const float* parameters, const float*, const std::int32_t* tokens, const std::int32_t* labels,
             std::int64_t batch, float* outputs, float* loss, void*) {
  logits(parameters, tokens, batch * positions, outputs);
  for (std::int64_t i = 0; i < batch * positions; ++i) demand_code(labels[i]);
  *loss = parameters[0];
  return 0;
}

int train_step(float* parameters, float*, float* gradients, float* optimizer, const std::int32_t* tokens,
               const std::int32_t* labels, std::int64_t batch, std::int64_t, std::uint64_t, std::int64_t,
               float learning_rate, float* outputs, float* loss, void* scratch) {
  std::fill_n(gradients, gpt_floats, 0.25F);
  for (std::int64_t i = 0; i < gpt_floats; ++i) {
    optimizer[i] = 0.9F * optimizer[i] + gradients[i];
    parameters[i] -= learning_rate * optimizer[i];
  }
  return evaluate(parameters, nullptr, tokens, labels, batch, outputs, loss, scratch);
}

int taming_main(int argc, char** argv) {
  static const Taming model = [] {
    Taming t;
    Model& gpt = t.transformer.model;
    gpt.name = "tiny_gpt";
    gpt.declaration_hash = 3;
    gpt.parameters = gpt_parameters;
    gpt.parameter_floats = gpt_floats;
    gpt.error = error;
    gpt.summary = summary();
    gpt.isa = isa;
    gpt.init = gpt_start;
    gpt.pack = gpt.pack_forward = pack;
    gpt.optimizer_state = {"optimizer.m.", "optimizer.v."};
    gpt.images_at_once = [](std::int64_t batch) { return batch; };
    gpt.train_scratch_bytes = gpt.evaluate_scratch_bytes = no_bytes;
    t.encode = pass(positions, encode);
    t.decode = pass(pixels, decode);
    t.image_shape[0] = 1;
    t.image_shape[1] = t.image_shape[2] = 28;
    t.transformer.tokens = {.name = "tiny_gpt",
                            .codes = codes,
                            .window = {2, 2},
                            .cache_bytes = no_bytes,
                            .step_scratch_bytes = no_bytes,
                            .step = step,
                            .error = error};
    t.classes = 10;
    t.transformer.train_step = train_step;
    t.transformer.evaluate = evaluate;
    return t;
  }();
  return taming_program(model, argc, argv);
}

// ---- what an input is used for ------------------------------------------------------------------------------------

struct Place {
  tessera::test::CallFolder folder;
  std::string vqgan = folder / "vqgan";

  Place() {
    if (run(vqgan_main, {"train", "--out", vqgan, "--digits", "12", "--epochs", "1"}) != 0) std::abort();
  }
  int run(int (*program)(int, char**), std::vector<std::string> arguments) const {
    return tessera::test::call(program, std::move(arguments));
  }
  /// The input as the checkpoint of a run of its own.
  std::string as_run(const char* name, const std::string& input) const {
    const std::string run = folder / name;
    std::filesystem::remove_all(run);
    std::filesystem::create_directories(run);
    std::filesystem::copy_file(input, run + "/checkpoint.safetensors");
    return run;
  }
};

/// Whether a field is a number of so few that what it counts takes a moment.
bool few(const Safetensors& file, const char* field, long most) {
  const auto found = file.metadata.find(field);
  return found == file.metadata.end() || (found->second.size() < 9 && std::atol(found->second.c_str()) <= most);
}

void use_vqgan(const Place& place, const std::string& input, const Safetensors& file) {
  const std::string exported = place.folder / "exported.safetensors", out = place.folder / "imported";
  std::filesystem::remove(exported);
  std::filesystem::remove_all(out);
  place.run(vqgan_main, {"eval", "--checkpoint", input, "--digits", "6"});
  if (place.run(vqgan_main, {"export", "--checkpoint", input, "-o", exported}) == 0 &&
      place.run(vqgan_main, {"import", exported, "--out", out}) != 0)
    std::abort();
  const auto data = file.metadata.find("data");
  if (data == file.metadata.end() || !data->second.empty() || !few(file, "digits", 60) || !few(file, "epochs", 3) ||
      !few(file, "batch", 1000))
    return;
  const std::string run = place.as_run("vqgan_run", input);
  if (place.run(vqgan_main, {"train", "--resume", "--out", run}) == 0 &&
      place.run(vqgan_main, {"eval", "--out", run, "--digits", "6"}) != 0)
    std::abort();
}

void use_gpt(const Place& place, const std::string& input, const Safetensors& file) {
  const std::string exported = place.folder / "gpt.safetensors", sheet = place.folder / "sheet.png",
                    out = place.folder / "imported_gpt";
  std::filesystem::remove(exported);
  std::filesystem::remove_all(out);
  place.run(taming_main, {"sample", "--out", input, "--vqgan", place.vqgan, "--count", "2", "-o", sheet});
  place.run(taming_main, {"eval", "--out", input, "--vqgan", place.vqgan, "--images", "6"});
  if (place.run(taming_main, {"export", "--out", input, "-o", exported}) == 0 &&
      place.run(taming_main, {"import", exported, "--vqgan", place.vqgan, "--out", out}) != 0)
    std::abort();
  if (!few(file, "step", 110)) return;
  const std::string run = place.as_run("gpt_run", input);
  if (place.run(taming_main, {"train", "--resume", "--vqgan", place.vqgan, "--out", run, "--images", "12", "--batch",
                              "4", "--steps", "112"}) == 0 &&
      place.run(taming_main, {"eval", "--out", run, "--images", "6"}) != 0)
    std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tessera::test::mutate_safetensors(data, size, most, seed, fields);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  place.folder.write("input.safetensors", data, size);
  const std::string input = place.folder / "input.safetensors";
  Safetensors file;
  try {
    file = read_safetensors(input);
  } catch (const Error&) {
    return 0;
  }
  if (file.tensors.contains("tokens"))
    place.run(vqgan_main, {"decode", input, "--out", place.vqgan, "-o", place.folder / "decoded.png"});
  else if (file.tensors.contains("tok_emb.weight") || file.tensors.contains("transformer.tok_emb.weight"))
    use_gpt(place, input, file);
  else
    use_vqgan(place, input, file);
  return 0;
}
