// The same bits from the emitted vit_mnist whatever the number of threads, and nearly the same numbers from every
// instruction set.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/digits.hpp"
#include "runtime/philox.hpp"
#include "tests/models/instruction_sets.hpp"
#include "vit_mnist.h"

namespace tessera::test {
namespace {

void use_threads([[maybe_unused]] int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
}

/// Whether these kernels are in use from now on: not where the processor cannot run them.
bool use_isa(const std::string& isa) {
  setenv("TESSERA_ISA", isa.c_str(), 1);
  return vit_mnist_isa() == isa;
}

/// Images, labels and parameters, the same for a batch on every machine.
struct Batch {
  explicit Batch(std::int64_t batch) : size(batch), images(static_cast<std::size_t>(batch * VIT_MNIST_IMAGE_FLOATS)) {
    runtime::Random random(5, 0, 0);
    for (float& pixel : images) pixel = static_cast<float>(random.uniform(0, 1));
    for (std::int64_t i = 0; i < batch; ++i)
      labels.push_back(static_cast<std::int32_t>(random.uniform(0, VIT_MNIST_OUTPUT_FLOATS)));
    EXPECT_EQ(vit_mnist_init(parameters.data(), 7), VIT_MNIST_OK);
  }
  std::int64_t size;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::vector<float> parameters = std::vector<float>(VIT_MNIST_PARAMETER_FLOATS, NAN);
};

/// Scratch memory that starts as not-a-number.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes)
      : memory_(static_cast<float*>(::operator new(static_cast<std::size_t>(bytes), alignment))) {
    std::fill_n(memory_.get(), bytes / 4, NAN);
  }
  void* get() { return memory_.get(); }

 private:
  static constexpr std::align_val_t alignment{VIT_MNIST_ALIGNMENT};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<float, Free> memory_;
};

/// Everything that the entry points write.
struct Results {
  std::vector<float> forward, outputs, gradients, image_gradients, maps, magnitudes, trained, losses;
  bool operator==(const Results& other) const {
    return same(forward, other.forward) && same(outputs, other.outputs) && same(gradients, other.gradients) &&
           same(image_gradients, other.image_gradients) && same(maps, other.maps) &&
           same(magnitudes, other.magnitudes) && same(trained, other.trained) && same(losses, other.losses);
  }
  static bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }
};

/// Forward, loss, gradients, and ten training steps.
Results run(std::int64_t size) {
  Batch b(size);
  const auto numbers = [&](std::int64_t an_image) {
    return std::vector<float>(static_cast<std::size_t>(size * an_image), NAN);
  };
  Results r{numbers(VIT_MNIST_OUTPUT_FLOATS),
            numbers(VIT_MNIST_OUTPUT_FLOATS),
            std::vector<float>(VIT_MNIST_PARAMETER_FLOATS, NAN),
            numbers(VIT_MNIST_IMAGE_FLOATS),
            numbers(VIT_MNIST_ATTENTION_FLOATS),
            numbers(VIT_MNIST_LAYERS),
            b.parameters,
            std::vector<float>(13, NAN)};
  Scratch forward(VIT_MNIST_FORWARD_SCRATCH_BYTES(size)), evaluate(VIT_MNIST_EVALUATE_SCRATCH_BYTES(size)),
      train(VIT_MNIST_TRAIN_SCRATCH_BYTES(size)), inputs(VIT_MNIST_INPUT_GRADIENT_SCRATCH_BYTES(size)),
      maps(VIT_MNIST_INSPECT_SCRATCH_BYTES(size));
  const float *p = b.parameters.data(), *x = b.images.data();
  const std::int32_t* y = b.labels.data();
  EXPECT_EQ(vit_mnist_forward(p, nullptr, x, size, r.forward.data(), forward.get()), 0);
  EXPECT_EQ(vit_mnist_evaluate(p, nullptr, x, y, size, r.outputs.data(), &r.losses[10], evaluate.get()), 0);
  EXPECT_EQ(vit_mnist_input_gradient(p, nullptr, x, y, size, r.outputs.data(), &r.losses[11], r.image_gradients.data(),
                                     inputs.get()),
            0);
  EXPECT_EQ(vit_mnist_inspect(p, nullptr, x, size, r.maps.data(), r.magnitudes.data(), maps.get()), 0);
  EXPECT_EQ(vit_mnist_loss_and_gradients(p, nullptr, x, y, size, size, 1, 1, r.outputs.data(), &r.losses[12],
                                         r.gradients.data(), train.get()),
            0);
  std::vector<float> gradients(VIT_MNIST_PARAMETER_FLOATS, 0.0f), optimizer(VIT_MNIST_OPTIMIZER_FLOATS, 0.0f);
  std::vector<float> outputs = numbers(VIT_MNIST_OUTPUT_FLOATS);
  for (int step = 1; step <= 10; ++step)
    EXPECT_EQ(vit_mnist_train_step(r.trained.data(), nullptr, gradients.data(), optimizer.data(), x, y, size,
                                   (size + 15) / 16, 1, step, 0.005f, outputs.data(),
                                   &r.losses[static_cast<std::size_t>(step - 1)], train.get()),
              0);
  return r;
}

class VitMnistDeterminism : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!use_isa(GetParam())) GTEST_SKIP() << "this processor cannot run " << GetParam();
  }
  void TearDown() override {
    unsetenv("TESSERA_ISA");
    use_threads(1);
  }
};

TEST_P(VitMnistDeterminism, OneTwoAndThreeThreadsGiveTheSameBits) {
  for (const std::int64_t batch : {1, 5, 16, 37, 128}) {
    use_threads(1);
    const Results one = run(batch);
    for (const float loss : one.losses) EXPECT_TRUE(std::isfinite(loss)) << "batch " << batch;
    for (const int threads : {2, 3}) {
      use_threads(threads);
      EXPECT_TRUE(run(batch) == one) << threads << " threads, batch " << batch;
    }
  }
}

TEST_P(VitMnistDeterminism, TrainingTwiceGivesTheSameBits) {
  use_threads(2);
  const Results once = run(24);
  EXPECT_TRUE(run(24) == once);
}

INSTANTIATE_TEST_SUITE_P(Isas, VitMnistDeterminism, testing::ValuesIn(instruction_sets),
                         [](const auto& info) { return info.param; });

/// |found - wanted| / |wanted|
double relative_error(const float* found, const float* wanted, std::int64_t count) {
  double difference = 0, size = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    difference += std::pow(double(found[i]) - wanted[i], 2);
    size += std::pow(double(wanted[i]), 2);
  }
  return std::sqrt(difference / (size + 1e-30));
}

TEST(VitMnistIsas, GiveNearlyTheSameNumbers) {
  ASSERT_TRUE(use_isa("scalar"));
  const Results scalar = run(37);
  for (const std::string& isa : instruction_sets) {
    if (!use_isa(isa)) continue;
    const Results wide = run(37);
    EXPECT_LE(relative_error(wide.outputs.data(), scalar.outputs.data(), 370), 1e-6) << isa;
    EXPECT_NEAR(wide.losses[12], scalar.losses[12], 1e-6) << isa;
    for (const tessera_parameter& row : vit_mnist_parameters) {
      const std::string key = row.name;
      // Adding one number to all scores of a row changes no softmax: a key's bias has no gradient but rounding.
      if (key.find("k_mappings") != std::string::npos && key.ends_with(".bias")) continue;
      std::int64_t count = 1;
      for (std::int32_t d = 0; d < row.rank; ++d) count *= row.shape[d];
      // Through a softmax come small differences of larger numbers.
      const bool scores = key.find("q_mappings") != std::string::npos || key.find("k_mappings") != std::string::npos;
      EXPECT_LE(relative_error(&wide.gradients[static_cast<std::size_t>(row.offset)],
                               &scalar.gradients[static_cast<std::size_t>(row.offset)], count),
                scores ? 2e-5 : 1e-5)
          << isa << ", " << key;
    }
  }
  unsetenv("TESSERA_ISA");
}

/// Parameters and losses after the first, the tenth and the hundredth step of training on built-in digits.
struct Trained {
  std::vector<std::vector<float>> parameters;
  std::vector<float> losses;
};
Trained train_on_digits(std::uint64_t seed) {
  constexpr std::int64_t size = 32, images = 640;
  const runtime::Dataset digits = runtime::draw_digits(images, seed, runtime::Split::train);
  std::vector<float> parameters(VIT_MNIST_PARAMETER_FLOATS), gradients = parameters,
                                                             optimizer(VIT_MNIST_OPTIMIZER_FLOATS);
  std::vector<float> x(size * VIT_MNIST_IMAGE_FLOATS), outputs(size * VIT_MNIST_OUTPUT_FLOATS);
  std::vector<std::int32_t> labels(size);
  Scratch scratch(VIT_MNIST_TRAIN_SCRATCH_BYTES(size));
  EXPECT_EQ(vit_mnist_init(parameters.data(), seed), 0);
  Trained trained;
  for (std::int64_t step = 1; step <= 100; ++step) {
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t image = ((step - 1) * size + i) % images;
      std::transform(digits.image(image).begin(), digits.image(image).end(), x.begin() + i * VIT_MNIST_IMAGE_FLOATS,
                     [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255; });
      labels[static_cast<std::size_t>(i)] = digits.labels[static_cast<std::size_t>(image)];
    }
    float loss = NAN;
    EXPECT_EQ(vit_mnist_train_step(parameters.data(), nullptr, gradients.data(), optimizer.data(), x.data(),
                                   labels.data(), size, size, seed, step, 0.005f, outputs.data(), &loss, scratch.get()),
              0);
    if (step != 1 && step != 10 && step != 100) continue;
    trained.parameters.push_back(parameters);
    trained.losses.push_back(loss);
  }
  return trained;
}

// The bounds of docs/design/numerics.md.
TEST(VitMnistIsas, AreAsNearAsDocumentedAfterOneTenAndAHundredSteps) {
  constexpr double of_parameters[] = {2e-4, 1e-3, 5e-3}, of_losses[] = {1e-6, 1e-5, 1e-3};
  for (const std::uint64_t seed : {1, 3}) {
    ASSERT_TRUE(use_isa("scalar"));
    const Trained scalar = train_on_digits(seed);
    for (const std::string& isa : instruction_sets) {
      if (isa == "scalar" || !use_isa(isa)) continue;
      const Trained wide = train_on_digits(seed);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_LE(relative_error(wide.parameters[i].data(), scalar.parameters[i].data(), VIT_MNIST_PARAMETER_FLOATS),
                  of_parameters[i])
            << isa << ", seed " << seed;
        EXPECT_NEAR(wide.losses[i], scalar.losses[i], of_losses[i]) << isa << ", seed " << seed;
      }
    }
  }
  unsetenv("TESSERA_ISA");
}

}  // namespace
}  // namespace tessera::test
