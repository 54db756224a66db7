// The emitted vit_mnist against PyTorch's numbers (tests/golden/mnist_vit, made by make_golden.py), for each
// instruction set that this processor has, with one and with two threads.
#include <gtest/gtest.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "vit_mnist.h"

namespace tessera {
namespace {

using runtime::Safetensors;

Safetensors golden(const std::string& file) {
  return runtime::read_safetensors(std::string(TESSERA_GOLDEN_DIR) + "/mnist_vit/" + file + ".safetensors");
}

struct Free {
  void operator()(float* p) const { ::operator delete(p, std::align_val_t(VIT_MNIST_ALIGNMENT)); }
};
using Memory = std::unique_ptr<float[], Free>;

/// Aligned memory that starts as not-a-number, so that reading what nobody wrote shows.
Memory memory(std::int64_t bytes) {
  auto* p = static_cast<float*>(::operator new(static_cast<std::size_t>(bytes), std::align_val_t(VIT_MNIST_ALIGNMENT)));
  for (std::int64_t i = 0; i < bytes / 4; ++i) p[i] = NAN;
  return Memory(p);
}

/// The parameters of a golden file, laid out as the model wants them.
std::vector<float> arena(const Safetensors& file) {
  std::vector<float> p(VIT_MNIST_PARAMETER_FLOATS, 0.0f);
  for (const tessera_parameter& row : vit_mnist_parameters) {
    const std::vector<float> values = file.at(row.name).floats();
    std::copy(values.begin(), values.end(), p.begin() + row.offset);
  }
  return p;
}

std::vector<float> slice(const float* from, const tessera_parameter& row, std::size_t count) {
  return {from + row.offset, from + row.offset + count};
}

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double(found[i]) - expected[i], 2);
    size += std::pow(double(expected[i]), 2);
  }
  return std::sqrt(difference) / (std::sqrt(size) + 1e-12);
}

double largest_difference(const std::vector<float>& found, const std::vector<float>& expected) {
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(double(found[i]) - expected[i]);
    if (!(d <= most)) most = d;  // keeps a NaN
  }
  return most;
}

/// Adding one number to all scores of a row changes no softmax, so the true gradient of a key's bias is zero. What
/// PyTorch recorded for it is rounding, about 1e-9, which Adam then blows up to steps of the learning rate: its values
/// can only be bounded, not compared.
bool has_no_effect(const tessera_parameter& row) {
  const std::string key = row.name;
  return key.find("k_mappings") != std::string::npos && key.ends_with(".bias");
}

struct Case {
  std::string isa;
  int threads;
};

class VitMnistGolden : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    setenv("TESSERA_ISA", GetParam().isa.c_str(), 1);
    if (std::string(vit_mnist_isa()) != GetParam().isa) GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
#ifdef _OPENMP
    omp_set_num_threads(GetParam().threads);
#endif
    const Safetensors batch = golden("batch");
    images_ = batch.at("images").floats();
    for (std::int64_t label : batch.at("labels").integers()) labels_.push_back(static_cast<std::int32_t>(label));
    size_ = static_cast<std::int64_t>(labels_.size());
    parameters_ = arena(golden("params"));
    scratch_ = memory(VIT_MNIST_TRAIN_SCRATCH_BYTES(size_));
    outputs_.assign(static_cast<std::size_t>(size_ * VIT_MNIST_OUTPUT_FLOATS), NAN);
  }
  void TearDown() override { unsetenv("TESSERA_ISA"); }

  std::vector<float> images_, parameters_, outputs_;
  std::vector<std::int32_t> labels_;
  std::int64_t size_ = 0;
  Memory scratch_;
};

TEST_P(VitMnistGolden, TheOutputsArePyTorchs) {
  auto scratch = memory(VIT_MNIST_FORWARD_SCRATCH_BYTES(size_));
  ASSERT_EQ(vit_mnist_forward(parameters_.data(), images_.data(), size_, outputs_.data(), scratch.get()), VIT_MNIST_OK);
  EXPECT_LE(largest_difference(outputs_, golden("forward").at("outputs").floats()), 1e-5);
}

TEST_P(VitMnistGolden, TheLossIsPyTorchs) {
  float loss = NAN;
  auto scratch = memory(VIT_MNIST_EVALUATE_SCRATCH_BYTES(size_));
  ASSERT_EQ(vit_mnist_evaluate(parameters_.data(), images_.data(), labels_.data(), size_, outputs_.data(), &loss,
                               scratch.get()),
            VIT_MNIST_OK);
  EXPECT_NEAR(loss, golden("backward").at("loss").floats()[0], 1e-5);
  EXPECT_LE(largest_difference(outputs_, golden("forward").at("outputs").floats()), 1e-5);
}

TEST_P(VitMnistGolden, EveryGradientIsPyTorchs) {
  const Safetensors expected = golden("backward");
  std::vector<float> gradients(VIT_MNIST_PARAMETER_FLOATS, NAN);
  float loss = NAN;
  ASSERT_EQ(vit_mnist_loss_and_gradients(parameters_.data(), images_.data(), labels_.data(), size_, outputs_.data(),
                                         &loss, gradients.data(), scratch_.get()),
            VIT_MNIST_OK);
  EXPECT_NEAR(loss, expected.at("loss").floats()[0], 1e-5);
  for (const tessera_parameter& row : vit_mnist_parameters) {
    const std::vector<float> want = expected.at(row.name).floats();
    const std::vector<float> have = slice(gradients.data(), row, want.size());
    if (has_no_effect(row))
      EXPECT_LE(largest_difference(have, std::vector<float>(want.size(), 0.0f)), 1e-7) << row.name;
    else
      EXPECT_LE(relative_error(have, want), 1e-4) << row.name;
  }
}

TEST_P(VitMnistGolden, TheGradientOfTheImagesIsPyTorchs) {
  const std::vector<float> want = golden("backward").at("grad_input").floats();
  std::vector<float> found(want.size(), NAN);
  float loss = NAN;
  auto scratch = memory(VIT_MNIST_INPUT_GRADIENT_SCRATCH_BYTES(size_));
  ASSERT_EQ(vit_mnist_input_gradient(parameters_.data(), images_.data(), labels_.data(), size_, outputs_.data(), &loss,
                                     found.data(), scratch.get()),
            VIT_MNIST_OK);
  EXPECT_LE(relative_error(found, want), 1e-4);
}

TEST_P(VitMnistGolden, TenAdamStepsArePyTorchs) {
  const Safetensors expected = golden("adam");
  const std::vector<float> losses = expected.at("losses").floats();
  std::vector<float> gradients(VIT_MNIST_PARAMETER_FLOATS, 0.0f), optimizer(VIT_MNIST_OPTIMIZER_FLOATS, 0.0f);
  for (std::size_t step = 1; step <= losses.size(); ++step) {
    float loss = NAN;
    ASSERT_EQ(
        vit_mnist_train_step(parameters_.data(), gradients.data(), optimizer.data(), images_.data(), labels_.data(),
                             size_, static_cast<std::int64_t>(step), 0.005f, outputs_.data(), &loss, scratch_.get()),
        VIT_MNIST_OK);
    EXPECT_NEAR(loss, losses[step - 1], 1e-4) << "step " << step;
    if (step != 3) continue;
    for (const tessera_parameter& row : vit_mnist_parameters) {
      const std::vector<float> want = expected.at(row.name).floats();
      const double tolerance = has_no_effect(row) ? 2 * 3 * 0.005 : 1e-4;
      EXPECT_LE(largest_difference(slice(parameters_.data(), row, want.size()), want), tolerance) << row.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, VitMnistGolden,
                         testing::Values(Case{"scalar", 1}, Case{"scalar", 2}, Case{"avx2", 1}, Case{"avx2", 2},
                                         Case{"avx512", 1}, Case{"avx512", 2}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.isa + "_" + std::to_string(info.param.threads) + "_threads";
                         });

}  // namespace
}  // namespace tessera
