// The two phases of a VQGAN's training step and its passes on the CPU that stands for a GPU, beside the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda_vqgan_decode.h"
#include "cuda_vqgan_discriminator.h"
#include "cuda_vqgan_generator.h"
#include "runtime/forward_pass.hpp"
#include "runtime/gpu.hpp"
#include "runtime/phases.hpp"
#include "runtime/safetensors.hpp"
#include "tests/paths.hpp"

extern const tessera::runtime::Cuda generator_on_cuda, discriminator_on_cuda, decode_on_cuda;

namespace tessera::test {
namespace {

using namespace runtime;
using Floats = std::vector<float>;

constexpr std::int64_t batch = 4;
constexpr float rates[2] = {2e-4F, 2e-4F};

Safetensors golden(const std::string& file) {
  return read_safetensors(std::string(paths::golden) + "/vq/vqgan_small/" + file + ".safetensors");
}

TrainingPhase generator() {
  TrainingPhase phase = TESSERA_TRAINING_PHASE(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR, "generator");
  phase.cuda = &generator_on_cuda;
  return phase;
}
TrainingPhase discriminator() {
  TrainingPhase phase = TESSERA_TRAINING_PHASE(cuda_vqgan_discriminator, CUDA_VQGAN_DISCRIMINATOR, "discriminator");
  phase.cuda = &discriminator_on_cuda;
  return phase;
}

/// With the parameters of tests/golden/vq.
AlternatingPhases phases(bool on_gpu) {
  AlternatingPhases made(generator(), discriminator(), batch, on_gpu);
  const Safetensors params = golden("params");
  for (const tessera_parameter& row : made.phase(0).parameters) {
    const Tensor& tensor = params.at(row.name);
    float* const to = made.parameters() + row.offset;
    if (tensor.is_real())
      std::ranges::copy(tensor.doubles(), to);
    else
      std::ranges::copy(tensor.integers(), to);
  }
  return made;
}

class CudaVqganPhases : public testing::Test {
 protected:
  const Floats images = golden("batch").at("images").floats();
  AlternatingPhases cpu = phases(false), gpu = phases(true);
};

TEST_F(CudaVqganPhases, ThreeStepsAreTheCpus) {
  for (std::int64_t step = 1; step <= 3; ++step) {
    const float factor = step > 1 ? 1 : 0;
    cpu.step(images.data(), batch, step, factor, rates);
    gpu.step(images.data(), batch, step, factor, rates);
    for (const int phase : {0, 1})
      for (const char* loss : cpu.phase(phase).losses)
        EXPECT_NEAR(gpu.loss(loss), cpu.loss(loss), 1e-4 * std::max(std::fabs(cpu.loss(loss)), 0.1F))
            << loss << " of step " << step;
    EXPECT_EQ(Floats(gpu.outputs(0).begin(), gpu.outputs(0).end()),
              Floats(cpu.outputs(0).begin(), cpu.outputs(0).end()))
        << "tokens of step " << step;
  }
  const float *const mine = gpu.parameters(), *const theirs = cpu.parameters(), *const moments = cpu.optimizer();
  const std::int64_t all = cpu.phase(0).parameter_floats;
  for (std::int64_t i = 0; i < all; ++i) {
    // Where a gradient is nothing but rounding, as of a convolution's bias before a norm, Adam makes whole steps of it.
    const bool moved = moments[all + i] > 1e-12F;
    ASSERT_NEAR(mine[i], theirs[i], moved ? 1e-4 * std::max(std::fabs(theirs[i]), 0.1F) : 2 * 3 * rates[0])
        << "parameter " << i;
    ASSERT_NEAR(gpu.optimizer()[i], moments[i], 1e-4 * (1 + std::fabs(moments[i]))) << "moment " << i;
  }
}

TEST_F(CudaVqganPhases, TheLastImagesOfAnEpochAreASmallerBatch) {
  cpu.step(images.data(), 2, 1, 1, rates);
  gpu.step(images.data(), 2, 1, 1, rates);
  EXPECT_NEAR(gpu.loss("total_loss"), cpu.loss("total_loss"), 1e-4F);
  EXPECT_NEAR(gpu.loss("disc_loss"), cpu.loss("disc_loss"), 1e-4F);
}

TEST_F(CudaVqganPhases, WhatIsNotANumberIsNamedAsOnTheCpu) {
  Floats broken = images;
  broken[5] = std::numeric_limits<float>::quiet_NaN();
  const auto said = [&](AlternatingPhases& of) -> std::string {
    try {
      of.step(broken.data(), batch, 1, 1, rates);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string theirs = said(cpu);
  EXPECT_NE(theirs.find("training diverged in the generator's phase of step 1"), std::string::npos) << theirs;
  EXPECT_EQ(said(gpu), theirs);
  // Nothing was updated: the next step is the first.
  gpu.step(images.data(), batch, 1, 1, rates);
  cpu.step(images.data(), batch, 1, 1, rates);
  EXPECT_NEAR(gpu.loss("total_loss"), cpu.loss("total_loss"), 1e-4F);
}

TEST(CudaVqgan, EveryLossHasToBeANumber) {
  const Model model = named("generator", &generator_on_cuda);
  const Gpu gpu(model);
  const auto count = std::ssize(generator().losses);
  const GpuMemory losses = GpuMemory::of_floats(gpu, count), loss = GpuMemory::of_floats(gpu, 1),
                  gradients = GpuMemory::of_floats(gpu, generator().parameter_floats),
                  step(gpu, sizeof(tessera_cuda_step));
  const auto stopped = [&](const Floats& numbers) {
    const tessera_cuda_step first{0, 1, 1, 0};
    tessera_cuda_step found{};
    losses.write(numbers.data(), 4 * count);
    step.write(&first, sizeof first);
    gpu.check(generator_on_cuda.check_phase(losses.floats(), loss.floats(), gradients.floats(),
                                            static_cast<tessera_cuda_step*>(step.data()), gpu.stream()));
    step.read(&found, sizeof found);
    return found.stopped;
  };
  Floats numbers(static_cast<std::size_t>(count), 1);
  EXPECT_EQ(stopped(numbers), 0);
  for (float& number : numbers) {
    number = std::numeric_limits<float>::infinity();
    EXPECT_NE(stopped(numbers), 0);
    number = 1;
  }
}

TEST_F(CudaVqganPhases, PassesAreTheCpus) {
  ForwardPass encode = TESSERA_FORWARD_PASS(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR),
              reconstruct = TESSERA_FORWARD_PASS(cuda_vqgan_discriminator, CUDA_VQGAN_DISCRIMINATOR),
              decode = TESSERA_FORWARD_PASS(cuda_vqgan_decode, CUDA_VQGAN_DECODE);
  encode.cuda = &generator_on_cuda;
  reconstruct.cuda = &discriminator_on_cuda;
  decode.cuda = &decode_on_cuda;
  const auto made = [&](const ForwardPass& pass, const Floats& inputs, std::int64_t floats, bool on_gpu) {
    Arena own = Arena::of_floats(pass.parameter_floats, pass.alignment);
    for (const tessera_parameter& row : pass.parameters)
      for (const tessera_parameter& theirs : cpu.phase(0).parameters)
        if (std::string_view(row.name) == theirs.name)
          std::copy_n(cpu.parameters() + theirs.offset, elements(Shape(row.shape, row.shape + row.rank)),
                      own.floats() + row.offset);
    return PackedPass(pass, std::move(own), on_gpu)(inputs, floats);
  };
  const std::int64_t floats = CUDA_VQGAN_GENERATOR_IMAGE_FLOATS;
  const Floats tokens = made(encode, images, floats, false);
  EXPECT_EQ(made(encode, images, floats, true), tokens);
  const auto expect_near = [](const Floats& mine, const Floats& theirs) {
    ASSERT_EQ(mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i) ASSERT_NEAR(mine[i], theirs[i], 1e-5 * (1 + std::fabs(theirs[i])));
  };
  expect_near(made(reconstruct, images, floats, true), made(reconstruct, images, floats, false));
  const std::int64_t positions = CUDA_VQGAN_DECODE_IMAGE_FLOATS;
  expect_near(made(decode, tokens, positions, true), made(decode, tokens, positions, false));
}

TEST(CudaVqgan, AProgramWithoutCudaSaysSo) {
  TrainingPhase first = generator();
  first.cuda = nullptr;
  try {
    const AlternatingPhases made(first, discriminator(), batch, true);
    FAIL() << "nothing was refused";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("was built without CUDA"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tessera::test
