// No packed data, features, fitted head or list of labels may do more than draw an Error from the commands that read
// them: whatever is accepted is trained and evaluated on, compared, fitted to and predicted with.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint.hpp"
#include "runtime/image.hpp"
#include "runtime/labels.hpp"
#include "runtime/packed_data.hpp"
#include "runtime/safetensors.hpp"
#include "tests/fuzz/called_program.hpp"
#include "tests/fuzz/safetensors_mutator.hpp"
#include "tests/runtime/sample_table.hpp"

#define main sample_program  // which is called as a function
#include "tests/runtime/sample_program.cpp"
#undef main

namespace {

const char* const fields[] = {"format",
                              "classes",
                              "class_names",
                              "source",
                              "train.fingerprint",
                              "test.fingerprint",
                              "pictures",
                              "data",
                              "split",
                              "model",
                              "declaration_hash",
                              "parameters_hash",
                              "input_crop",
                              "input_mean.0",
                              "input_deviation.2",
                              "input_interpolation"};

/// What every input is used with: parameters, all of them zero so that their hash in the corpus is of any compiler's,
/// and a picture.
struct Place {
  tessera::test::CallFolder folder;
  std::string weights = folder / "weights.safetensors", picture = folder / "picture.png";

  Place() {
    save_model(weights, sample_model(), std::vector<float>(SAMPLE_PARAMETER_FLOATS).data(), std::nullopt);
    const tessera::runtime::Bytes png = encode_png(tessera::runtime::Bytes(28 * 28, 100), 1, 28, 28);
    folder.write("picture.png", png.data(), png.size());
  }
  int run(std::vector<std::string> arguments) const {
    return tessera::test::call(sample_program, std::move(arguments));
  }
};

/// Every image and label that is accepted is there and within its bounds.
void look(const std::filesystem::path& file, Split split) {
  const Dataset data = read_packed_data(file, split);
  const std::int64_t size = data.size();
  unsigned sum = 0;
  for (std::int64_t i = 0; i < size; ++i)
    for (const std::uint8_t pixel : data.image(i)) sum += pixel;
  if (std::ranges::any_of(data.labels, [&](std::int32_t label) { return label < 0 || label >= data.classes; }) ||
      (size > 0 && sum == ~0U))
    std::abort();
}

void use_labels(const Place& place, const std::uint8_t* data, std::size_t size) {
  for (const char* const name : {"labels.csv", "labels.txt"}) {
    place.folder.write(name, data, size);
    try {
      for (const std::string& label : read_labels(place.folder / name, 10))
        if (label != without_controls(label)) std::abort();
      place.run({"predict", place.picture, "--checkpoint", place.weights, "--labels", place.folder / name});
    } catch (const Error&) {
    }
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  return tessera::test::mutate_safetensors(data, size, most, seed, fields);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  place.folder.write("input", data, size);
  const std::string input = place.folder / "input", sheet = place.folder / "sheet.html",
                    head = place.folder / "head.safetensors", out = place.folder / "run";
  const std::vector<std::string> with{"--checkpoint", place.weights};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), with.begin(), with.end());
    return place.run(std::move(arguments));
  };
  std::string format;
  try {
    const auto metadata = read_metadata(input);
    if (const auto found = metadata.find("format"); found != metadata.end()) format = found->second;
    // A folder that the input names is anybody's, and takes longer.
    if (const auto found = metadata.find("data"); found != metadata.end() && !found->second.empty()) return 0;
  } catch (const Error&) {
    if (size < 8 || data[7] != 0) use_labels(place, data, size);
    return 0;
  }
  for (const Split split : {Split::train, Split::test}) try {
      look(input, split);
    } catch (const Error&) {
    }
  if (format.starts_with("tessera packed")) {
    run({"eval", "--data", input});
    std::filesystem::remove_all(out);
    place.run({"train", "--data", input, "--epochs", "1", "--batch", "3", "--out", out});
    run({"embed", "--data", input, "-o", place.folder / "features.safetensors"});
    return 0;
  }
  run({"similar", place.picture, "--index", input, "-o", sheet});
  std::filesystem::remove(head);
  if (run({"probe", "--index", input, "-o", head}) == 0 && run({"predict", place.picture, "--head", head}) != 0)
    std::abort();
  run({"predict", place.picture, "--head", input});
  return 0;
}
