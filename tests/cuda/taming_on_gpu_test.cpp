// The program of a transformer over the tokens of a VQGAN with --device cuda, the CPU standing for the GPU, beside
// --device cpu.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cuda_gpt.h"
#include "cuda_vqgan_decode.h"
#include "cuda_vqgan_generator.h"
#include "runtime/taming_program.hpp"
#include "tests/cuda/picture_programs.hpp"

extern const tessera::runtime::Cuda gpt_on_cuda, generator_on_cuda, decode_on_cuda;

namespace tessera::runtime {
namespace {

Taming small() {
  Taming t{.transformer = TESSERA_TOKEN_TRANSFORMER(cuda_gpt, CUDA_GPT, "taming_small", 4, 4),
           .encode = TESSERA_FORWARD_PASS(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR),
           .decode = TESSERA_FORWARD_PASS(cuda_vqgan_decode, CUDA_VQGAN_DECODE),
           .image_shape = {3, 16, 16},
           .classes = 10};
  t.transformer.model.cuda = &gpt_on_cuda;
  t.encode.cuda = &generator_on_cuda;
  t.decode.cuda = &decode_on_cuda;
  return t;
}

class CudaTaming : public PicturePrograms {
 protected:
  static Said run(const Taming& taming, const std::vector<std::string>& arguments) {
    return run_here("taming_small", arguments,
                    [&](int argc, char** argv) { return taming_program(taming, argc, argv); });
  }
  Said train(const std::string& device, const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"train",   "--vqgan",    at("vqgan.safetensors"),
                                       "--data",  at("images"), "--device",
                                       device,    "--out",      at(out),
                                       "--batch", "5",          "--keep",
                                       "0.8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(taming, arguments);
  }
  const Taming taming = small();
};

TEST_F(CudaTaming, ThreeStepsAreTheCpus) {
  const Said on_cpu = train("cpu", "cpu", {"--steps", "3"}), on_gpu = train("cuda", "gpu", {"--steps", "3"});
  ASSERT_EQ(on_cpu.code, 0) << on_cpu.err;
  ASSERT_EQ(on_gpu.code, 0) << on_gpu.err;
  const Safetensors theirs = checkpoint("cpu"), mine = checkpoint("gpu");
  EXPECT_EQ(mine.metadata.at("codebook"), theirs.metadata.at("codebook"));
  const double loss = std::stod(theirs.metadata.at("loss sum"));
  EXPECT_NEAR(std::stod(mine.metadata.at("loss sum")), loss, 1e-4 * loss);
  ASSERT_EQ(mine.tensors.size(), theirs.tensors.size());
  for (const tessera_parameter& row : taming.transformer.model.parameters) {
    const auto squares = theirs.at(std::string("optimizer.v.") + row.name).floats(),
               wanted = theirs.at(row.name).floats(), found = mine.at(row.name).floats();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // Where a gradient is nothing but rounding, as of the keys' bias, AdamW makes whole steps of it.
      const double most = squares[i] > 1e-12F ? 1e-4 : 2 * 3 * taming.learning_rate;
      ASSERT_NEAR(found[i], wanted[i], most) << row.name << " at " << i;
    }
  }
  EXPECT_NE(slurp(folder / "gpu" / "report.html").find("CUDA"), std::string::npos);
}

TEST_F(CudaTaming, AResumedRunEndsInTheSameBytes) {
  for (const auto& more :
       {std::vector<std::string>{"--steps", "2"}, std::vector<std::string>{"--steps", "4", "--resume"}})
    ASSERT_EQ(train("cuda", "resumed", more).code, 0);
  ASSERT_EQ(train("cuda", "whole", {"--steps", "4"}).code, 0);
  EXPECT_EQ(checkpoint("resumed").tensors.size(), checkpoint("whole").tensors.size());
  for (const auto& [name, tensor] : checkpoint("whole").tensors)
    EXPECT_EQ(checkpoint("resumed").at(name).floats(), tensor.floats()) << name;
}

TEST_F(CudaTaming, TheLossOnTestImagesIsTheCpus) {
  ASSERT_EQ(train("cuda", "run", {"--steps", "1"}).code, 0);
  const auto loss = [&](const std::string& device) {
    const Said said = run(taming, {"eval", "--out", at("run"), "--data", at("images"), "--device", device});
    EXPECT_EQ(said.code, 0) << said.err;
    double nats = 0;
    EXPECT_EQ(std::sscanf(said.out.c_str(), "loss %lf nats a token on 12 test images", &nats), 1) << said.out;
    return nats;
  };
  const double on_cpu = loss("cpu");
  EXPECT_GT(on_cpu, 1);
  EXPECT_NEAR(loss("cuda"), on_cpu, 2e-4);
}

TEST_F(CudaTaming, PicturesAreDrawnOnTheCpu) {
  ASSERT_EQ(train("cuda", "run", {"--steps", "1"}).code, 0);
  const std::vector<std::string> draw{"sample", "--out", at("run"), "--count", "2", "-o", at("s.png")};
  EXPECT_EQ(run(taming, draw).code, 0);
  std::vector<std::string> on_gpu = draw;
  on_gpu.insert(on_gpu.end(), {"--device", "cuda"});
  const Said said = run(taming, on_gpu);
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(said.err,
            "taming_small: --device cuda: a step of one token has no kernels for GPUs, pictures are drawn on the CPU "
            "only\n");
}

TEST_F(CudaTaming, AProgramWithoutCudaSaysSoBeforeItWritesAnything) {
  Taming without = small();
  without.transformer.model.cuda = nullptr;
  const Said said = run(without, {"train", "--vqgan", at("none"), "--device", "cuda", "--out", at("none")});
  EXPECT_EQ(said.code, 1);
  EXPECT_NE(said.err.find("was built without CUDA"), std::string::npos) << said.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

}  // namespace
}  // namespace tessera::runtime
