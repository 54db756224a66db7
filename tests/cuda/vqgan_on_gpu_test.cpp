// The program of a VQGAN with --device cuda, the CPU standing for the GPU, beside --device cpu.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda_vqgan_decode.h"
#include "cuda_vqgan_discriminator.h"
#include "cuda_vqgan_generator.h"
#include "runtime/vqgan.hpp"
#include "tests/cuda/picture_programs.hpp"

extern const tessera::runtime::Cuda generator_on_cuda, discriminator_on_cuda, decode_on_cuda;

namespace tessera::runtime {
namespace {

Vqgan small() {
  Vqgan m{.name = "vqgan_small",
          .generator = TESSERA_TRAINING_PHASE(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR, "generator"),
          .discriminator = TESSERA_TRAINING_PHASE(cuda_vqgan_discriminator, CUDA_VQGAN_DISCRIMINATOR, "discriminator"),
          .encode = TESSERA_FORWARD_PASS(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR),
          .reconstruct = TESSERA_FORWARD_PASS(cuda_vqgan_discriminator, CUDA_VQGAN_DISCRIMINATOR),
          .decode = TESSERA_FORWARD_PASS(cuda_vqgan_decode, CUDA_VQGAN_DECODE),
          .image_shape = {3, 16, 16},
          .tokens = {4, 4},
          .codes = 32,
          .batch = 5,
          .epochs = 1,
          .disc_start = 1,
          .generator_rate = 2e-4,
          .discriminator_rate = 2e-4,
          .later = 1,
          .summary = cuda_vqgan_generator_summary};
  m.generator.cuda = m.encode.cuda = &generator_on_cuda;
  m.discriminator.cuda = m.reconstruct.cuda = &discriminator_on_cuda;
  m.decode.cuda = &decode_on_cuda;
  return m;
}

class CudaVqganProgram : public PicturePrograms {
 protected:
  Said run(const std::vector<std::string>& arguments) const {
    return run_here("vqgan_small", arguments, [&](int argc, char** argv) { return vqgan_program(vqgan, argc, argv); });
  }
  /// The same on both devices, which have to succeed.
  std::vector<std::string> on_both(const std::vector<std::string>& arguments, const std::string& to = "") const {
    std::vector<std::string> said;
    for (const char* device : {"cpu", "cuda"}) {
      std::vector<std::string> all = arguments;
      all.insert(all.end(), {"--device", device});
      if (!to.empty()) all.insert(all.end(), {"-o", at(device + to)});
      const Said one = run(all);
      EXPECT_EQ(one.code, 0) << one.err;
      said.push_back(one.out);
    }
    return said;
  }
  static double mse(const std::string& said) {
    double found = NAN;
    const std::size_t begin = said.find("MSE ");
    EXPECT_TRUE(begin != std::string::npos && std::sscanf(said.c_str() + begin, "MSE %lf", &found) == 1) << said;
    return found;
  }

  const Vqgan vqgan = small();
};

TEST_F(CudaVqganProgram, ItsPassesAreTheCpus) {
  ASSERT_EQ(run({"import", at("vqgan.safetensors"), "--out", at("run")}).code, 0);
  const std::string picture = (folder / "images/test/1/2.png").string();
  const auto evaluated = on_both({"eval", "--data", at("images"), "--out", at("run")});
  EXPECT_NEAR(mse(evaluated[1]), mse(evaluated[0]), 1e-4 * mse(evaluated[0]));
  EXPECT_EQ(evaluated[1].substr(evaluated[1].find("codes ")), evaluated[0].substr(evaluated[0].find("codes ")));

  on_both({"encode", picture, "--out", at("run")}, ".tokens");
  const auto tokens = read_safetensors(folder / "cpu.tokens").at("tokens").integers();
  EXPECT_EQ(tokens.size(), 16u);
  EXPECT_EQ(read_safetensors(folder / "cuda.tokens").at("tokens").integers(), tokens);

  on_both({"decode", at("cpu.tokens"), "--out", at("run")}, ".png");
  const auto pixels = [&](const char* name) {
    const std::string png = slurp(folder / name);
    return decode_image(bytes_of(png), 3, name).pixels;
  };
  const Bytes wanted = pixels("cpu.png"), found = pixels("cuda.png");
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(found[i], wanted[i], 1) << "byte " << i;

  const auto rebuilt = on_both({"reconstruct", picture, "--out", at("run")}, ".rebuilt.png");
  EXPECT_NEAR(mse(rebuilt[1]), mse(rebuilt[0]), 1e-4 * mse(rebuilt[0]));
}

}  // namespace
}  // namespace tessera::runtime
