// No checkpoint may do more than draw an Error: whatever is accepted has fields within their bounds, evaluates, and
// goes on training.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"
#include "tests/fuzz/random.hpp"
#include "tests/runtime/sample_table.hpp"

#define main sample_program  // which is called as a function
#include "tests/runtime/sample_program.cpp"
#undef main

namespace {

using Json = nlohmann::json;
using tessera::test::Choices;

const char* const fields[] = {"batch",
                              "batches",
                              "best_epoch",
                              "best_loss",
                              "correct",
                              "curve",
                              "data",
                              "digits",
                              "epoch",
                              "declaration_hash",
                              "epochs",
                              "fingerprint",
                              "test_fingerprint",
                              "format",
                              "input_crop",
                              "input_interpolation",
                              "input_squash",
                              "input_deviation.0",
                              "input_mean.2",
                              "learning_rate",
                              "limit",
                              "loss_sum",
                              "model",
                              "position",
                              "seed",
                              "seen",
                              "step",
                              "kernels",
                              "init",
                              "skip",
                              "classes",
                              "patches"};

/// Changes one thing of the header.
void change(Json& header, Choices& choices) {
  Json& metadata = header["__metadata__"];
  if (choices.below(4) > 0) {
    const std::string field = choices.of(fields);
    switch (choices.below(8)) {
      case 0:
        metadata.erase(field);
        break;
      case 1:
        metadata[field] = metadata.value(choices.of(fields), "");
        break;
      case 2:
        metadata[field] = metadata.value(field, "") + choices.number();
        break;
      case 3:
        metadata[field] = 1;
        break;
      default:
        metadata[field] = choices.number();
    }
    return;
  }
  if (header.size() < 2) return;
  auto entry = std::next(header.begin(), static_cast<std::ptrdiff_t>(choices.below(header.size())));
  if (!entry->is_object() || !entry->contains("shape")) return;
  static const char* const types[] = {"F32", "F16", "BF16", "F64", "I64", "U8", "F8", ""};
  Json& shape = (*entry)["shape"];
  switch (choices.below(6)) {
    case 0:
      (*entry)["dtype"] = choices.of(types);
      break;
    case 1:
      (*entry)["data_offsets"][choices.below(2)] = choices.size();
      break;
    case 2:
      shape.push_back(choices.size());
      break;
    case 3:
      if (shape.is_array() && !shape.empty()) shape[choices.below(shape.size())] = choices.size();
      break;
    case 4: {
      const Json copy = *entry;
      header["optimizer.m." + entry.key()] = copy;
      break;
    }
    default:
      header.erase(entry.key());
  }
}

/// A folder in memory, which goes with the process.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name =
        (std::filesystem::exists("/dev/shm") ? "/dev/shm/" : "/tmp/") + std::string("tessera-fuzz-XXXXXX");
    if (!mkdtemp(name.data())) std::abort();
    path = name;
    std::cout.rdbuf(nullptr);  // what commands say
    std::cerr.rdbuf(nullptr);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

int run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "sample");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const int code = sample_program(static_cast<int>(argv.size()), argv.data());
  if (code != 0 && code != 1) std::abort();
  return code;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Choices choices(seed);
  std::uint64_t length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (choices.one_in(16) || size < 8 || length > size - 8) return LLVMFuzzerMutate(data, size, most);
  Json header = Json::parse(data + 8, data + 8 + length, nullptr, false);
  if (!header.is_object() || !header.value("__metadata__", Json::object()).is_object())
    return LLVMFuzzerMutate(data, size, most);
  try {
    for (std::size_t times = 1 + choices.below(3); times > 0; --times) change(header, choices);
  } catch (const Json::exception&) {  // two changes that do not go together
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string numbers(reinterpret_cast<char*>(data) + 8 + length, size - 8 - length);
  if (choices.one_in(8) && !numbers.empty())
    numbers[choices.below(numbers.size())] = static_cast<char>(choices.below(256));
  if (choices.one_in(16)) numbers.resize(choices.below(numbers.size() + 9));
  length = text.size();
  std::string file(reinterpret_cast<char*>(&length), 8);
  file += text + numbers;
  if (file.size() > most) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  static const Model sample = sample_model();
  static const Arena parameters = Arena::of_floats(sample.parameter_floats, 64),
                     optimizer = Arena::of_floats(sample.optimizer_floats(), 64);
  const std::filesystem::path file = folder.path / "checkpoint.safetensors";
  std::filesystem::remove_all(folder.path / "start.safetensors");
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  std::ostringstream notes;
  try {
    read_metadata(file);
    start_from(file, sample, {"head.*"}, parameters.floats(), notes);
  } catch (const Error&) {
  }
  try {
    read_start(file, sample);
  } catch (const Error&) {
  }
  bool resumes = false;
  try {
    const Loaded loaded = load_parameters(file, sample, parameters.floats(), notes);
    for (std::int64_t i = 0; i < sample.parameter_floats; ++i)
      if (!std::isfinite(parameters.floats()[i])) std::abort();
    const TrainingState state = resume_checkpoint(file, sample, parameters.floats(), optimizer.floats());
    if (!loaded.state) std::abort();
    const Recipe& r = state.recipe;
    if (r.batch < 1 || r.batch > most_batch || r.epochs < 0 || r.epochs > most_epochs || state.epoch < 0 ||
        state.position < 0 || state.step < 0 || state.seen < 0 || state.correct < 0 || state.correct > state.seen ||
        !std::isfinite(state.loss_sum) || !std::isfinite(r.learning_rate) || state.data.digits < 1 ||
        state.data.digits > most_digits)
      std::abort();
    // What takes a moment, and reads no folder that the input names.
    resumes = state.data.folder.empty() && state.data.digits <= 60 && r.batch <= 1000 && r.epochs - state.epoch <= 2;
  } catch (const Error&) {
  }
  if (!resumes) return 0;
  run({"eval", "--checkpoint", file.string(), "--digits", "6"});
  const std::string out = folder.path.string();
  if (run({"train", "--resume", "--isa-change", "--out", out}) == 0)
    resume_checkpoint(file, sample, parameters.floats(), optimizer.floats());
  return 0;
}
