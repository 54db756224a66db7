#include "runtime/checkpoint.hpp"

#include <algorithm>
#include <limits>

#include "runtime/arena.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() {
    sample_init(parameters.floats(), 1);
    std::fill(optimizer.floats() + 16, optimizer.floats() + SAMPLE_PARAMETER_FLOATS, 0.25f);
    optimizer.floats()[SAMPLE_PARAMETER_FLOATS + 3] = 7;
    state.recipe.learning_rate = 0.1;
    state.recipe.seed = ~std::uint64_t{0};
    state.data = {"some folder", 77, 5};
    state.fingerprint = 0xfedcba98;
    state.step = 12;
    state.epoch = 1;
    state.position = 64;
    state.loss_sum = 0.1 + 0.2;
    state.correct = 3;
    state.seen = 9;
    state.batches = 2;
    state.curve = {{12, 1, 0.5, 0.25, {}, 0.75}};
    save_checkpoint(file(), model, parameters.floats(), optimizer.floats(), state);
  }
  std::filesystem::path file() { return folder / "c"; }
  /// Writes the checkpoint with a change.
  void change(const std::function<void(Safetensors&)>& change) {
    Safetensors content = read_safetensors(file());
    change(content);
    write_safetensors(file(), content);
  }
  std::string refusal() {
    return sentence([&] { load_parameters(file(), model, parameters.floats()); });
  }
  std::string resume_refusal() {
    return sentence([&] { resume_checkpoint(file(), model, parameters.floats(), optimizer.floats()); });
  }

  TemporaryFolder folder;
  Model model = sample_model();
  Arena parameters = Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64);
  Arena optimizer = Arena::of_floats(SAMPLE_OPTIMIZER_FLOATS, 64);
  TrainingState state;
};

TEST_F(Checkpoint, RoundTripKeepsEveryBit) {
  const Arena p = Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64), o = Arena::of_floats(SAMPLE_OPTIMIZER_FLOATS, 64);
  const TrainingState read = resume_checkpoint(file(), model, p.floats(), o.floats());
  EXPECT_TRUE(std::equal(p.floats(), p.floats() + SAMPLE_PARAMETER_FLOATS, parameters.floats()));
  EXPECT_TRUE(std::equal(o.floats(), o.floats() + SAMPLE_OPTIMIZER_FLOATS, optimizer.floats()));
  EXPECT_EQ(read.recipe.learning_rate, 0.1);
  EXPECT_EQ(read.recipe.seed, ~std::uint64_t{0});
  EXPECT_EQ(read.data, state.data);
  EXPECT_EQ(read.fingerprint, state.fingerprint);
  EXPECT_EQ(read.step, 12);
  EXPECT_EQ(read.epoch, 1);
  EXPECT_EQ(read.position, 64);
  EXPECT_EQ(read.loss_sum, 0.1 + 0.2);
  EXPECT_EQ(read.correct, 3);
  EXPECT_EQ(read.seen, 9);
  EXPECT_EQ(read.batches, 2);
  EXPECT_EQ(read.curve, state.curve);
}

TEST_F(Checkpoint, HoldsKeysAndShapesAsTheModelTellsThem) {
  const Safetensors content = read_safetensors(file());
  EXPECT_EQ(content.at("head.weight").shape, (Shape{10, 784}));
  EXPECT_EQ(content.at("optimizer.m.head.weight").floats()[0], 0.25f);
  EXPECT_EQ(content.at("optimizer.v.head.bias").floats()[3], 7);
  EXPECT_EQ(content.tensors.size(), 6u);
}

TEST_F(Checkpoint, FileWithTheModelsKeysAloneCanBeEvaluatedButNotResumed) {
  change([](Safetensors& content) {
    std::erase_if(content.tensors, [](const auto& entry) { return entry.first.starts_with("optimizer."); });
    content.metadata.clear();
  });
  EXPECT_FALSE(load_parameters(file(), model, parameters.floats()).has_value());
  EXPECT_EQ(resume_refusal(), file().string() + " holds a model and no training run: it can be evaluated, not resumed");
}

TEST_F(Checkpoint, MissingTensorIsNamedWithItsShape) {
  change([](Safetensors& content) { content.tensors.erase("head.weight"); });
  EXPECT_EQ(refusal(), file().string() + " has no tensor 'head.weight' [10, 784], which sample needs");
}

TEST_F(Checkpoint, MissingMomentIsNamed) {
  change([](Safetensors& content) { content.tensors.erase("optimizer.v.head.bias"); });
  EXPECT_EQ(refusal(), "");
  EXPECT_CONTAINS(resume_refusal(), "has no tensor 'optimizer.v.head.bias' [10]");
}

TEST_F(Checkpoint, UnknownTensorIsNamed) {
  change([](Safetensors& content) { content.tensors["blocks.0.bias"] = Tensor::of({2}, std::vector<float>{1, 2}); });
  EXPECT_EQ(refusal(), file().string() + " holds 'blocks.0.bias' [2], which sample does not have");
}

TEST_F(Checkpoint, WrongShapeNamesBothAndSuggestsATransposition) {
  change([](Safetensors& content) { content.tensors["head.weight"].shape = {784, 10}; });
  EXPECT_EQ(refusal(), file().string() +
                           ": tensor 'head.weight' has the shape [784, 10], sample needs [10, 784] (was it "
                           "saved transposed?)");
  change([](Safetensors& content) { content.tensors["head.weight"].shape = {20, 392}; });
  EXPECT_EQ(refusal(), file().string() + ": tensor 'head.weight' has the shape [20, 392], sample needs [10, 784]");
}

TEST_F(Checkpoint, WrongTypeIsNamed) {
  change([](Safetensors& content) { content.tensors["head.bias"].dtype = "I32"; });
  EXPECT_EQ(refusal(), file().string() + ": tensor 'head.bias' has the type I32, F32 is needed");
}

TEST_F(Checkpoint, OtherModelOrDeclarationIsRefused) {
  model.name = "vit";
  EXPECT_EQ(refusal(), file().string() + " is a checkpoint of sample, this is vit");
  model.name = "sample";
  model.declaration_hash = 0xab;
  EXPECT_EQ(refusal(),
            file().string() + " was trained with another declaration of sample (5a3b1e0000000001, this is ab)");
}

TEST_F(Checkpoint, DamagedMetadataIsNamed) {
  for (const char* wrong : {"-1", "", "1x", "99999999999999999999"}) {
    change([&](Safetensors& content) { content.metadata["step"] = wrong; });
    EXPECT_EQ(resume_refusal(), file().string() + ": the checkpoint's 'step' is damaged");
  }
  change([](Safetensors& content) { content.metadata["step"] = "1", content.metadata["loss_sum"] = "nan"; });
  EXPECT_CONTAINS(resume_refusal(), "'loss_sum' is damaged");
  change([](Safetensors& content) { content.metadata.erase("seed"), content.metadata["loss_sum"] = "1"; });
  EXPECT_CONTAINS(resume_refusal(), "does not say its 'seed'");
}

TEST_F(Checkpoint, EveryTruncationIsRefused) {
  const std::string whole = slurp(file());
  for (std::size_t size = 0; size < whole.size(); size += size < 3000 ? 7 : 4999) {
    spill(file(), whole.substr(0, size));
    EXPECT_NE(resume_refusal(), "") << size;
  }
}

}  // namespace
}  // namespace tessera::runtime
