// The emitted ViT-Tiny with published weights on photographs, against the reference implementation's numbers. Weights
// and numbers are too large for the repository: they lie below TESSERA_SHARED.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/preprocess.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "vit_tiny.h"

namespace tessera::test {
namespace {

constexpr std::size_t layers = 12, heads = 3, tokens = 197;

struct Case {
  std::string photo, isa;
};

class VitTinyPhotos : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("TESSERA_SHARED");
    if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: the weights and the photographs are not at hand";
    setenv("TESSERA_ISA", GetParam().isa.c_str(), 1);
    if (std::string(vit_tiny_isa()) != GetParam().isa) GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
    const std::string folder = shared;
    expected_ = runtime::read_safetensors(folder + "/golden/vit_tiny_photos/" + GetParam().photo + ".safetensors");
    const auto weights = runtime::read_safetensors(folder + "/weights/vit_tiny_patch16_224.safetensors");
    ASSERT_EQ(weights.tensors.size(), std::size_t{VIT_TINY_PARAMETERS});
    for (const tessera_parameter& row : vit_tiny_parameters) {
      const runtime::Tensor& tensor = weights.at(row.name);
      ASSERT_EQ(tensor.shape, runtime::Shape(row.shape, row.shape + row.rank)) << row.name;
      const std::vector<float> values = tensor.floats();
      std::copy(values.begin(), values.end(), parameters_.begin() + row.offset);
    }
    ASSERT_EQ(vit_tiny_pack(parameters_.data(), packed_.data()), VIT_TINY_OK);
    image_ = expected_.at("image").floats();
  }
  void TearDown() override { unsetenv("TESSERA_ISA"); }

  runtime::Safetensors expected_;
  std::vector<float> parameters_ = std::vector<float>(VIT_TINY_PARAMETER_FLOATS),
                     packed_ = std::vector<float>(VIT_TINY_PACKED_FLOATS), image_;
};

TEST_P(VitTinyPhotos, TheLogitsAreTheReferences) {
  const std::vector<float> want = expected_.at("logits").floats();
  std::vector<float> logits(want.size(), NAN);
  std::vector<char> scratch(VIT_TINY_FORWARD_SCRATCH_BYTES(1));
  ASSERT_EQ(vit_tiny_forward(parameters_.data(), packed_.data(), image_.data(), 1, logits.data(), scratch.data()),
            VIT_TINY_OK);
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(logits[i], want[i], 1e-3) << "class " << i;
}

TEST_P(VitTinyPhotos, WhatTheClassTokenAttendsToInTheLastBlockIsTheReferences) {
  const std::vector<float> want = expected_.at("attention.11.cls").floats();  // [heads, tokens]
  std::vector<float> maps(VIT_TINY_ATTENTION_FLOATS, NAN), magnitudes(VIT_TINY_LAYERS, NAN);
  std::vector<char> scratch(VIT_TINY_INSPECT_SCRATCH_BYTES(1));
  ASSERT_EQ(maps.size(), layers * heads * tokens * tokens);
  ASSERT_EQ(want.size(), heads * tokens);
  ASSERT_EQ(vit_tiny_inspect(parameters_.data(), packed_.data(), image_.data(), 1, maps.data(), magnitudes.data(),
                             scratch.data()),
            VIT_TINY_OK);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::size_t head = i / tokens, token = i % tokens;
    ASSERT_NEAR(maps[((layers - 1) * heads + head) * tokens * tokens + token], want[i], 1e-5) << head << " " << token;
  }
}

/// From the photograph itself.
class VitTinyPhotoFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("TESSERA_SHARED");
    if (!shared) GTEST_SKIP() << "TESSERA_SHARED is not set: the weights and the photographs are not at hand";
    const std::string name = GetParam();
    folder_ = shared;
    photo_ = folder_ + "/data/photos/" + name + ".png";
    expected_ = runtime::read_safetensors(folder_ + "/golden/vit_tiny_photos/" + name + ".safetensors");
  }

  std::string folder_, photo_;
  runtime::Safetensors expected_;
};

TEST_P(VitTinyPhotoFiles, BecomeTheReferencesImages) {
  const runtime::Image photo = runtime::decode_image(runtime::read_file(photo_, 1 << 24), 3, photo_);
  const runtime::Preprocessing input{.mean = {0.5, 0.5, 0.5}, .deviation = {0.5, 0.5, 0.5}, .crop = 0.9};
  const runtime::Image seen = runtime::prepared(photo, input, 224, 224);
  const std::vector<float> want = expected_.at("image").floats();
  std::vector<float> got(want.size());
  ASSERT_EQ(seen.pixels.size(), want.size());
  runtime::normalize(seen.pixels, 3, input, got.data());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST_P(VitTinyPhotoFiles, ThePredictedClassesAreTheReferences) {
  const std::vector<float> logits = expected_.at("logits").floats();
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
  const auto exponential = [&](int label) {
    return std::exp(static_cast<double>(logits[static_cast<std::size_t>(label)]));
  };
  double sum = 0;
  for (const int label : order) sum += exponential(label);

  const runtime::Result result = runtime::sample(
      {"predict", photo_, "--topk", "5", "--checkpoint", folder_ + "/weights/vit_tiny_patch16_224.safetensors"});
  ASSERT_EQ(result.code, 0) << result.err;
  ASSERT_TRUE(result.out.starts_with(photo_)) << result.out;
  std::istringstream line(result.out.substr(photo_.size()));
  for (std::size_t i = 0; i < 5; ++i) {
    int label = -1;
    double probability = NAN;
    ASSERT_TRUE(line >> label >> probability) << result.out;
    EXPECT_EQ(label, order[i]) << result.out;
    EXPECT_NEAR(probability, exponential(label) / sum, 0.01) << result.out;
  }
}

INSTANTIATE_TEST_SUITE_P(Photos, VitTinyPhotoFiles, testing::Values("chelsea", "coffee"));

INSTANTIATE_TEST_SUITE_P(Isas, VitTinyPhotos,
                         testing::Values(Case{"chelsea", "scalar"}, Case{"chelsea", "avx2"}, Case{"chelsea", "avx512"},
                                         Case{"coffee", "scalar"}, Case{"coffee", "avx2"}, Case{"coffee", "avx512"}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return info.param.photo + "_" + info.param.isa;
                         });

}  // namespace
}  // namespace tessera::test
