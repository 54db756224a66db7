// What the tests of the picture programs with --device cuda share: a small VQGAN's parameters, pictures, and a program
// that runs in this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::runtime {

/// Exit code and what was said.
struct Said {
  int code;
  std::string out, err;
};

/// program(argc, argv), told `name` and these arguments.
template <class Program>
Said run_here(const std::string& name, std::vector<std::string> arguments, const Program& program) {
  arguments.insert(arguments.begin(), name);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = program(static_cast<int>(argv.size()), argv.data());
  const std::string out = testing::internal::GetCapturedStdout();
  return {code, out, testing::internal::GetCapturedStderr()};
}

/// vqgan.safetensors, the parameters of tests/golden/vq/vqgan_small, and images, twelve 16x16 pictures of two classes
/// to train on and as many to test with.
class PicturePrograms : public testing::Test {
 protected:
  PicturePrograms() {
    Safetensors vqgan = read_safetensors(std::string(paths::golden) + "/vq/vqgan_small/params.safetensors");
    for (auto& [name, tensor] : vqgan.tensors)  // counters of batches are integers there
      if (!tensor.is_real()) {
        const auto counted = tensor.integers();
        tensor = Tensor::of(tensor.shape, std::vector<float>(counted.begin(), counted.end()));
      }
    write_safetensors(folder / "vqgan.safetensors", vqgan);
    for (const char* split : {"train", "test"})
      for (std::size_t c = 0; c < 2; ++c)
        for (std::size_t i = 0; i < 6; ++i) {
          Bytes pixels(std::size_t{3} * 16 * 16);
          for (std::size_t p = 0; p < pixels.size(); ++p)
            pixels[p] = static_cast<std::uint8_t>((p * (7 + c * 6) + i * 41) % 251);
          const auto to = folder / "images" / split / std::to_string(c);
          std::filesystem::create_directories(to);
          const Bytes png = encode_png(pixels, 3, 16, 16);
          spill(to / (std::to_string(i) + ".png"), std::string(png.begin(), png.end()));
        }
  }
  std::string at(const std::string& name) const { return (folder / name).string(); }
  Safetensors checkpoint(const std::string& run) const {
    return read_safetensors(folder / run / "checkpoint.safetensors");
  }

  const TemporaryFolder folder;
};

}  // namespace tessera::runtime
