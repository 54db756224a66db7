// Emitted models against PyTorch's numbers (tests/golden, made by make_golden.py), for each instruction set that this
// processor has, with one and with two threads.
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
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/safetensors.hpp"
#include "tests/models/emitted_model.hpp"
#include "tests/models/instruction_sets.hpp"
#include "tests/paths.hpp"
#include "vit_cifar_small.h"
#include "vit_gap.h"
#include "vit_mean_of_patches.h"
#include "vit_mnist.h"
#include "vit_notebook_small.h"
#include "vit_only_registers.h"
#include "vit_registers.h"
#include "vit_simple.h"
#include "vit_tiny_small.h"
#include "vit_vaswani.h"

namespace tessera::test {
namespace {

using runtime::Safetensors;

const EmittedModel models[] = {
    TESSERA_EMITTED_MODEL(vit_mnist, VIT_MNIST, "mnist_vit", 0.005f),
    TESSERA_EMITTED_MODEL(vit_tiny_small, VIT_TINY_SMALL, "vit_tiny_small", 0.001f),
    TESSERA_EMITTED_MODEL(vit_cifar_small, VIT_CIFAR_SMALL, "cifar_vit_small", 0.001f),
    TESSERA_EMITTED_MODEL(vit_notebook_small, VIT_NOTEBOOK_SMALL, "notebook_vit_small", 0.001f),
    TESSERA_EMITTED_MODEL(vit_gap, VIT_GAP, "variants/vit_gap", 0.001f),
    TESSERA_EMITTED_MODEL(vit_registers, VIT_REGISTERS, "variants/vit_registers", 0.001f),
    TESSERA_EMITTED_MODEL(vit_simple, VIT_SIMPLE, "variants/vit_simple", 0.001f),
    TESSERA_EMITTED_MODEL(vit_vaswani, VIT_VASWANI, "variants/vit_vaswani", 0.001f),
    TESSERA_EMITTED_MODEL(vit_mean_of_patches, VIT_MEAN_OF_PATCHES, "variants/vit_mean_of_patches", 0.001f),
    TESSERA_EMITTED_MODEL(vit_only_registers, VIT_ONLY_REGISTERS, "variants/vit_only_registers", 0.001f),
};

struct Free {
  std::align_val_t alignment{};
  void operator()(float* p) const { ::operator delete(p, alignment); }
};
using Memory = std::unique_ptr<float[], Free>;

/// Adding one number to all scores of a row changes no softmax, so the true gradient of a key's bias is zero. What
/// PyTorch recorded for it is rounding, about 1e-9, which Adam then blows up to steps of the learning rate: its values
/// can only be bounded, not compared. A fused bias is those of queries, keys and values, one after the other; where
/// keys are normalised, it is the norm's bias that has no effect (and the variants that do so have no other).
bool has_no_effect(const std::string& key, std::size_t i, std::size_t count) {
  if (key.ends_with("qkv.bias") || key.ends_with("in_proj_bias")) return count / 3 <= i && i < 2 * (count / 3);
  if (key.ends_with("k_norm.bias")) return true;
  return key.ends_with(".bias") &&
         (key.find("k_mappings.") != std::string::npos || key.find("k_weights.") != std::string::npos);
}

/// Numbers against PyTorch's: |difference| / |theirs| over all, and the largest difference of one.
struct Comparison {
  double relative = 0, largest = 0;
};
Comparison compare(const std::vector<float>& found, const std::vector<float>& expected) {
  double difference = 0, size = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(double(found.at(i)) - expected[i]);
    difference += d * d;
    size += double(expected[i]) * expected[i];
    if (!(d <= largest)) largest = d;  // keeps a NaN
  }
  return {std::sqrt(difference) / (std::sqrt(size) + 1e-12), largest};
}

class Golden : public testing::TestWithParam<std::tuple<const EmittedModel*, std::string, int>> {
 protected:
  void SetUp() override {
    const std::string isa = std::get<1>(GetParam());
    setenv("TESSERA_ISA", isa.c_str(), 1);
    if (std::string(model_.isa()) != isa) GTEST_SKIP() << "this processor cannot run " << isa;
#ifdef _OPENMP
    omp_set_num_threads(std::get<2>(GetParam()));
#endif
    const Safetensors batch = golden("batch");
    images_ = batch.at("images").floats();
    for (std::int64_t label : batch.at("labels").integers()) labels_.push_back(static_cast<std::int32_t>(label));
    size_ = static_cast<std::int64_t>(labels_.size());
    outputs_.assign(static_cast<std::size_t>(size_ * model_.output_floats), NAN);
    parameters_.assign(static_cast<std::size_t>(model_.parameter_floats), 0);
    packed_.assign(static_cast<std::size_t>(model_.packed_floats), NAN);
    const Safetensors file = golden("params");
    ASSERT_EQ(file.tensors.size(), model_.parameters.size());
    for (const tessera_parameter& row : model_.parameters) {
      const auto& tensor = file.at(row.name);
      ASSERT_EQ(tensor.shape, std::vector<std::int64_t>(row.shape, row.shape + row.rank)) << row.name;
      const std::vector<float> values = tensor.floats();
      std::copy(values.begin(), values.end(), parameters_.begin() + row.offset);
    }
  }
  void TearDown() override { unsetenv("TESSERA_ISA"); }

  Safetensors golden(const std::string& file) const {
    return runtime::read_safetensors(std::string(paths::golden) + "/" + model_.golden + "/" + file + ".safetensors");
  }

  /// Aligned memory that starts as not-a-number, so that reading what nobody wrote shows.
  Memory memory(std::int64_t bytes) const {
    const std::align_val_t alignment{static_cast<std::size_t>(model_.alignment)};
    auto* p = static_cast<float*>(::operator new(static_cast<std::size_t>(bytes), alignment));
    for (std::int64_t i = 0; i < bytes / 4; ++i) p[i] = NAN;
    return Memory(p, Free{alignment});
  }

  struct Inspection {
    std::vector<float> maps, magnitudes;
  };
  Inspection inspect() {
    const auto images = static_cast<std::size_t>(size_);
    Inspection seen{std::vector<float>(images * static_cast<std::size_t>(model_.attention_floats), NAN),
                    std::vector<float>(images * model_.layers.size(), NAN)};
    const Memory scratch = memory(model_.inspect_bytes(size_));
    EXPECT_EQ(model_.inspect(unless_packed(), packed_forward(), images_.data(), size_, seen.maps.data(),
                             seen.magnitudes.data(), scratch.get()),
              0);
    return seen;
  }

  const float* packed() {
    packed_.assign(static_cast<std::size_t>(model_.packed_floats), NAN);
    EXPECT_EQ(model_.pack(parameters_.data(), packed_.data()), 0);
    return packed_.data();
  }
  /// The parameters; null where all that is read without training is packed.
  const float* unless_packed() const { return model_.packed_forward_floats ? nullptr : parameters_.data(); }
  /// No more than what is read where nothing is trained.
  const float* packed_forward() {
    packed_.assign(static_cast<std::size_t>(model_.packed_forward_floats), NAN);
    EXPECT_EQ(model_.pack_forward(parameters_.data(), packed_.data()), 0);
    return packed_.data();
  }

  /// The numbers of one parameter, or of its gradient, in an arena: those that matter, and those that have no effect.
  struct Parts {
    std::vector<float> effective, idle;
  };
  static Parts parts(const float* from, const tessera_parameter& row, std::size_t count) {
    Parts p;
    for (std::size_t i = 0; i < count; ++i)
      (has_no_effect(row.name, i, count) ? p.idle : p.effective).push_back(from[i]);
    return p;
  }

  const EmittedModel& model_ = *std::get<0>(GetParam());
  std::vector<float> images_, parameters_, packed_, outputs_;
  std::vector<std::int32_t> labels_;
  std::int64_t size_ = 0;
  float loss_ = NAN;
};

/// Starts from golden's parameters and batch too.
class Overfit : public Golden {};

TEST_P(Golden, TheOutputsArePyTorchs) {
  const Memory scratch = memory(model_.forward_bytes(size_));
  ASSERT_EQ(model_.forward(unless_packed(), packed_forward(), images_.data(), size_, outputs_.data(), scratch.get()),
            0);
  EXPECT_LE(compare(outputs_, golden("forward").at("outputs").floats()).largest, 1e-5);
}

TEST_P(Golden, TheLossIsPyTorchs) {
  const Memory scratch = memory(model_.evaluate_bytes(size_));
  ASSERT_EQ(model_.evaluate(unless_packed(), packed_forward(), images_.data(), labels_.data(), size_, outputs_.data(),
                            &loss_, scratch.get()),
            0);
  EXPECT_NEAR(loss_, golden("backward").at("loss").floats()[0], 1e-5);
  EXPECT_LE(compare(outputs_, golden("forward").at("outputs").floats()).largest, 1e-5);
}

TEST_P(Golden, EveryGradientIsPyTorchs) {
  const Safetensors expected = golden("backward");
  std::vector<float> gradients(static_cast<std::size_t>(model_.parameter_floats), NAN);
  const Memory scratch = memory(model_.train_bytes(size_));
  ASSERT_EQ(model_.loss_and_gradients(parameters_.data(), packed(), images_.data(), labels_.data(), size_, size_, 1, 1,
                                      outputs_.data(), &loss_, gradients.data(), scratch.get()),
            0);
  EXPECT_NEAR(loss_, expected.at("loss").floats()[0], 1e-5);
  for (const tessera_parameter& row : model_.parameters) {
    const std::vector<float> all = expected.at(row.name).floats();
    const Parts want = parts(all.data(), row, all.size()), have = parts(&gradients[row.offset], row, all.size());
    EXPECT_LE(compare(have.effective, want.effective).relative, 1e-4) << row.name;
    for (const float gradient : have.idle) EXPECT_NEAR(gradient, 0, 1e-7) << row.name;
  }
}

#ifdef _OPENMP
TEST_P(Golden, TheGradientsHaveTheSameBitsOnOneThreadAndOnThreeAndWithFewImagesAtOnce) {
  std::vector<std::vector<float>> found;
  std::vector<float> losses;
  const std::int64_t few = (size_ + 15) / 16;
  for (const auto& [threads, at_once] : {std::pair{1, size_}, {3, size_}, {1, few}, {3, few}}) {
    omp_set_num_threads(threads);
    const Memory scratch = memory(model_.train_bytes(at_once));
    found.emplace_back(static_cast<std::size_t>(model_.parameter_floats), NAN);
    losses.push_back(NAN);
    ASSERT_EQ(model_.loss_and_gradients(parameters_.data(), packed(), images_.data(), labels_.data(), size_, at_once, 1,
                                        1, outputs_.data(), &losses.back(), found.back().data(), scratch.get()),
              0);
    EXPECT_EQ(std::memcmp(found[0].data(), found.back().data(), found[0].size() * sizeof(float)), 0)
        << threads << " threads, " << at_once << " at once";
    EXPECT_EQ(losses[0], losses.back());
  }
}
#endif

TEST_P(Golden, TheGradientOfTheImagesIsPyTorchs) {
  const std::vector<float> want = golden("backward").at("grad_input").floats();
  std::vector<float> found(want.size(), NAN);
  const Memory scratch = memory(model_.input_gradient_bytes(size_));
  ASSERT_EQ(model_.input_gradient(parameters_.data(), packed(), images_.data(), labels_.data(), size_, outputs_.data(),
                                  &loss_, found.data(), scratch.get()),
            0);
  EXPECT_LE(compare(found, want).relative, 1e-4);
}

TEST_P(Golden, TheAttentionMapsAreProbabilitiesAndPyTorchsWhereItRecordedThem) {
  const auto [maps, magnitudes] = inspect();
  for (const float p : maps) ASSERT_TRUE(0 <= p && p <= 1) << p;
  const Safetensors expected = golden("forward");
  const std::size_t layers = expected.tensors.size() - 1;  // all but the outputs
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::vector<float> want = expected.at("attention." + std::to_string(layer)).floats();
    const std::size_t of_image = want.size() / static_cast<std::size_t>(size_);
    ASSERT_EQ(want.size() * layers, maps.size());
    std::vector<float> found;
    for (std::size_t image = 0; image < static_cast<std::size_t>(size_); ++image) {
      const auto begin = maps.begin() + static_cast<std::ptrdiff_t>((image * layers + layer) * of_image);
      found.insert(found.end(), begin, begin + static_cast<std::ptrdiff_t>(of_image));
    }
    EXPECT_LE(compare(found, want).largest, 1e-5) << "layer " << layer;
  }
}

TEST_P(Golden, MagnitudesAreOfEveryLayerAndEndWithThoseOfTheOutputs) {
  const std::size_t layers = model_.layers.size(), images = static_cast<std::size_t>(size_);
  const std::vector<float> magnitudes = inspect().magnitudes;
  const std::vector<float> outputs = golden("forward").at("outputs").floats();
  const std::size_t classes = outputs.size() / images;
  for (std::size_t image = 0; image < images; ++image) {
    for (std::size_t layer = 0; layer < layers; ++layer)
      ASSERT_TRUE(magnitudes[image * layers + layer] >= 0) << model_.layers[layer];
    float sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::abs(outputs[image * classes + c]);
    EXPECT_NEAR(magnitudes[(image + 1) * layers - 1], sum / static_cast<float>(classes), 1e-5);
  }
}

TEST_P(Golden, LayerThatGivesWhatIsNotANumberIsTheFirstWhoseMagnitudeIsNone) {
  const std::size_t layers = model_.layers.size();
  std::size_t found = 0;
  for (const tessera_parameter& row : model_.parameters) {
    const std::string key = row.name;
    if (!key.ends_with(".bias")) continue;
    const std::string module = key.substr(0, key.size() - 5);
    const auto layer = std::find(model_.layers.begin(), model_.layers.end(), module);
    if (layer == model_.layers.end()) continue;
    ++found;
    const float kept = std::exchange(parameters_[static_cast<std::size_t>(row.offset)], INFINITY);
    const std::vector<float> magnitudes = inspect().magnitudes;
    const std::size_t last = static_cast<std::size_t>(layer - model_.layers.begin());
    for (std::size_t image = 0; image < static_cast<std::size_t>(size_); ++image)
      for (std::size_t i = 0; i <= last; ++i)
        ASSERT_EQ(std::isfinite(magnitudes[image * layers + i]), i != last) << key << ", layer " << i;
    parameters_[static_cast<std::size_t>(row.offset)] = kept;
  }
  EXPECT_GT(found, 0u);
}

TEST_P(Golden, TenAdamStepsArePyTorchs) {
  const Safetensors expected = golden("adam");
  const std::vector<float> losses = expected.at("losses").floats();
  const Memory scratch = memory(model_.train_bytes(size_));
  std::vector<float> gradients(static_cast<std::size_t>(model_.parameter_floats), 0.0f);
  std::vector<float> optimizer(static_cast<std::size_t>(model_.optimizer_floats), 0.0f);
  packed();  // from here on updates pack
  for (std::size_t step = 1; step <= losses.size(); ++step) {
    ASSERT_EQ(model_.train_step(parameters_.data(), packed_.data(), gradients.data(), optimizer.data(), images_.data(),
                                labels_.data(), size_, size_, 1, static_cast<std::int64_t>(step), model_.learning_rate,
                                outputs_.data(), &loss_, scratch.get()),
              0);
    EXPECT_NEAR(loss_, losses[step - 1], 1e-4) << "step " << step;
    if (step != 3) continue;
    for (const tessera_parameter& row : model_.parameters) {
      const std::vector<float> all = expected.at(row.name).floats();
      const Parts want = parts(all.data(), row, all.size()), have = parts(&parameters_[row.offset], row, all.size());
      EXPECT_LE(compare(have.effective, want.effective).largest, 1e-4) << row.name;
      EXPECT_LE(compare(have.idle, want.idle).largest, 2 * 3 * model_.learning_rate) << row.name;
    }
  }
}

/// On one batch the loss falls to the least that the model can have, which is not zero where outputs between two bounds
/// are taken for logits: make_overfit.py says what it is for the softmax of vit_mnist and the tanh of vit_notebook, at
/// which PyTorch stops as well.
TEST_P(Overfit, OneBatchIsLearnedByHeartAsFarAsPyTorchLearnsIt) {
  const Memory scratch = memory(model_.train_bytes(size_));
  std::vector<float> gradients(static_cast<std::size_t>(model_.parameter_floats), 0.0f);
  std::vector<float> optimizer(static_cast<std::size_t>(model_.optimizer_floats), 0.0f);
  packed();
  for (std::int64_t step = 1; step <= 601; ++step)
    ASSERT_EQ(model_.train_step(parameters_.data(), packed_.data(), gradients.data(), optimizer.data(), images_.data(),
                                labels_.data(), size_, size_, 1, step, model_.learning_rate, outputs_.data(), &loss_,
                                scratch.get()),
              0);
  const Safetensors expected = runtime::read_safetensors(std::string(paths::golden) + "/overfit.safetensors");
  EXPECT_NEAR(loss_, expected.at(model_.golden).floats()[0], 1e-3);
}

std::vector<const EmittedModel*> all_models() {
  std::vector<const EmittedModel*> all;
  for (const EmittedModel& model : models) all.push_back(&model);
  return all;
}

std::string case_name(const testing::TestParamInfo<Golden::ParamType>& info) {
  const std::string& folder = std::get<0>(info.param)->golden;
  return folder.substr(folder.find('/') + 1) + "_" + std::get<1>(info.param) + "_" +
         std::to_string(std::get<2>(info.param)) + "_threads";
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Combine(testing::ValuesIn(all_models()), testing::ValuesIn(instruction_sets),
                                          testing::Values(1, 2)),
                         case_name);
// The numbers of a step do not depend on the instruction set: that is what the tests above show.
INSTANTIATE_TEST_SUITE_P(Models, Overfit,
                         testing::Combine(testing::ValuesIn(all_models()), testing::Values(instruction_sets[1]),
                                          testing::Values(1)),
                         case_name);

}  // namespace
}  // namespace tessera::test
