#include "runtime/checkpoint.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <utility>

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
    state.recipe.input = {.mean = {0.1, -0.25, 0.3},
                          .deviation = {0.5, 1.5, 0.7},
                          .crop = 0.9,
                          .interpolation = Interpolation::bilinear,
                          .fit = Fit::squash};
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
    state.classes = {"cat", "great white shark"};
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

  std::string misfit(const std::string& why) { return file().string() + " does not fit sample: " + why; }

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
  EXPECT_EQ(read.recipe.input.mean, state.recipe.input.mean);
  EXPECT_EQ(read.recipe.input.deviation, state.recipe.input.deviation);
  EXPECT_EQ(read.recipe.input.crop, 0.9);
  EXPECT_EQ(read.recipe.input.interpolation, Interpolation::bilinear);
  EXPECT_EQ(read.recipe.input.fit, Fit::squash);
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
  EXPECT_EQ(read.classes, state.classes);
}

TEST_F(Checkpoint, SaysThatPicturesArePadded) {
  state.recipe.input = {.mean = {0.1, 0.2, 0.3}, .deviation = {1, 1, 1}, .crop = 1, .fit = Fit::pad};
  save_checkpoint(file(), model, parameters.floats(), optimizer.floats(), state);
  EXPECT_EQ(read_safetensors(file()).metadata.at("input_pad"), "1");
  const TrainingState read = resume_checkpoint(file(), model, parameters.floats(), optimizer.floats());
  EXPECT_EQ(read.recipe.input.fit, Fit::pad);
  change([](Safetensors& content) { content.metadata["input_crop"] = "0.9"; });
  EXPECT_CONTAINS(refusal(), "the checkpoint's 'input_pad' is damaged");
}

TEST_F(Checkpoint, HoldsKeysAndShapesAsTheModelTellsThem) {
  const Safetensors content = read_safetensors(file());
  EXPECT_EQ(content.at("head.weight").shape, (Shape{10, 784}));
  EXPECT_EQ(content.at("optimizer.m.head.weight").floats()[0], 0.25f);
  EXPECT_EQ(content.at("optimizer.v.head.bias").floats()[3], 7);
  EXPECT_EQ(content.tensors.size(), 6u);
}

#if defined(__linux__)
/// What this process has read of files.
std::int64_t bytes_read() {
  std::ifstream counters("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  counters >> name >> bytes;
  return name == "rchar:" ? bytes : -1;
}

TEST_F(Checkpoint, OptimizersMomentsAreNotReadWhereParametersAreUsed) {
  if (bytes_read() < 0) GTEST_SKIP() << "this system does not count what a process reads";
  const std::int64_t before = bytes_read();
  load_parameters(file(), model, parameters.floats());
  const std::int64_t used = bytes_read() - before;
  resume_checkpoint(file(), model, parameters.floats(), optimizer.floats());
  const std::int64_t resumed = bytes_read() - before - used;
  EXPECT_GE(used, 4 * 7850);  // two parameters, [10, 784] and [10]
  EXPECT_LT(used, 2 * 4 * 7850);
  EXPECT_GE(resumed, 3 * 4 * 7850);
}
#endif

TEST_F(Checkpoint, FileWithTheModelsKeysAloneCanBeEvaluatedButNotResumed) {
  change([](Safetensors& content) {
    std::erase_if(content.tensors, [](const auto& entry) { return entry.first.starts_with("optimizer."); });
    content.metadata.clear();
  });
  EXPECT_FALSE(load_parameters(file(), model, parameters.floats()).state.has_value());
  EXPECT_EQ(resume_refusal(),
            file().string() + " holds a model and no training run: it can be evaluated, not resumed (train --init " +
                file().string() + " starts from it)");
}

TEST_F(Checkpoint, MissingTensorIsNamedWithItsShape) {
  change([](Safetensors& content) { content.tensors.erase("head.weight"); });
  EXPECT_EQ(refusal(), misfit("'head.weight' [CLASSES=10, IH*IW=784] is missing"));
}

TEST_F(Checkpoint, MissingMomentIsNamed) {
  change([](Safetensors& content) { content.tensors.erase("optimizer.v.head.bias"); });
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(resume_refusal(), misfit("'optimizer.v.head.bias' [CLASSES=10] is missing"));
}

TEST_F(Checkpoint, UnknownTensorIsNamed) {
  change([](Safetensors& content) { content.tensors["blocks.0.bias"] = Tensor::of({2}, std::vector<float>{1, 2}); });
  EXPECT_EQ(refusal(), misfit("it holds 'blocks.0.bias' [2], which sample does not have"));
}

TEST_F(Checkpoint, WrongShapeNamesBothAndGuessesWhatHappened) {
  const auto shaped = [&](const Shape& shape) {
    change([&](Safetensors& content) {
      content.tensors["head.weight"] = Tensor::of(shape, std::vector<float>(static_cast<std::size_t>(elements(shape))));
    });
    return refusal();
  };
  const std::string needed = ", where [CLASSES=10, IH*IW=784] is needed";
  EXPECT_EQ(shaped({784, 10}), misfit("'head.weight' is [IH*IW=784, CLASSES=10]" + needed + " (transposed?)"));
  EXPECT_EQ(shaped({1000, 784}), misfit("'head.weight' is [CLASSES=1000, IH*IW=784]" + needed));
  EXPECT_EQ(shaped({10, 28, 28}),
            misfit("'head.weight' is [10, 28, 28]" + needed + " (reshaped? it holds as many numbers)"));
  EXPECT_EQ(shaped({}), misfit("'head.weight' is []" + needed));
}

TEST_F(Checkpoint, KernelWithItsDimsInAnotherOrderIsTakenForTransposed) {
  const tessera_parameter rows[] = {{"k", 4, 1, {6, 3, 2, 2}, 0, "[D=6, C=3, P=2, P=2]"}};
  model.parameters = rows;
  model.parameter_floats = 72;
  Safetensors content;
  content.tensors["k"] = Tensor::of({2, 2, 3, 6}, std::vector<float>(72));
  write_safetensors(file(), content);
  EXPECT_EQ(refusal(), misfit("'k' is [P=2, P=2, C=3, D=6], where [D=6, C=3, P=2, P=2] is needed (transposed?)"));
  content.tensors["k"] = Tensor::of({6, 2, 2, 3}, std::vector<float>(72));
  write_safetensors(file(), content);
  EXPECT_CONTAINS(refusal(), "(transposed? the sizes are the same)");
}

TEST_F(Checkpoint, WrongTypeIsNamed) {
  change([](Safetensors& content) { content.tensors["head.bias"].dtype = "I32"; });
  EXPECT_EQ(refusal(), misfit("'head.bias' holds I32, where F32, F16, BF16 or F64 is needed"));
}

TEST_F(Checkpoint, EveryDifferenceIsToldAtOnceByKind) {
  change([](Safetensors& content) {
    content.tensors.erase("head.bias");
    content.tensors["head.weight"].shape = {784, 10};
    for (int i = 0; i < 13; ++i) content.tensors["layer." + std::to_string(i)] = Tensor::of({1}, std::vector<float>{1});
    content.metadata["declaration_hash"] = "ab";
  });
  EXPECT_EQ(refusal(), misfit(R"(16 differences
  the file as a whole (1):
    it was made with another declaration of sample ('ab', this is '5a3b1e0000000001'; 'import' takes its parameters all the same)
  missing (1):
    'head.bias' [CLASSES=10]
  of another shape or type (1):
    'head.weight' is [IH*IW=784, CLASSES=10], where [CLASSES=10, IH*IW=784] is needed (transposed?)
  unknown to sample (13):
    'layer.0' [1]
    'layer.1' [1]
    'layer.10' [1]
    'layer.11' [1]
    'layer.12' [1]
    'layer.2' [1]
    'layer.3' [1]
    'layer.4' [1]
    'layer.5' [1]
    'layer.6' [1]
    and 3 more)"));
}

TEST_F(Checkpoint, NamesThatOnlyBeginOtherwiseAreNoticed) {
  Safetensors content;
  for (const tessera_parameter& row : model.parameters) {
    const Shape shape(row.shape, row.shape + row.rank);
    content.tensors[std::string("module.") + row.name] =
        Tensor::of(shape, std::vector<float>(static_cast<std::size_t>(elements(shape))));
  }
  write_safetensors(file(), content);
  EXPECT_CONTAINS(refusal(), "does not fit sample: 4 differences");
  EXPECT_CONTAINS(refusal(), "its names begin with 'module.', which those of sample do not");
}

TEST_F(Checkpoint, NumbersOfTwoAndOfEightBytesAreRead) {
  for (const char* dtype : {"F16", "BF16", "F64"}) {
    std::vector<float> bias(10, 0.5f);
    change([&](Safetensors& content) {
      content.tensors["head.bias"] = dtype == std::string("F64")
                                         ? Tensor::of({10}, std::vector<double>(bias.begin(), bias.end()))
                                         : Tensor::of(dtype, {10}, bias);
    });
    parameters.floats()[0] = 0;
    EXPECT_EQ(refusal(), "");
    EXPECT_TRUE(std::equal(bias.begin(), bias.end(), parameters.floats())) << dtype;
  }
  change([](Safetensors& content) { content.tensors["head.bias"] = Tensor::of({10}, std::vector<double>(10, 1e300)); });
  EXPECT_EQ(refusal(), misfit("'head.bias' holds 1e+300, too large for F32"));
}

TEST_F(Checkpoint, NumbersThatAreNotFiniteAreRefusedInParametersAndInTheOptimiser) {
  for (const auto& [number, said] :
       {std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"}, {-std::numeric_limits<float>::infinity(), "-inf"}})
    for (const char* dtype : {"F32", "F16", "BF16"}) {
      std::vector<float> bias(10, 0.5f);
      bias[7] = number;
      const std::string why = text("holds ", said, ", which is no finite number");
      change([&](Safetensors& content) { content.tensors["head.bias"] = Tensor::of(dtype, {10}, bias); });
      EXPECT_EQ(refusal(), misfit("'head.bias' " + why));
      EXPECT_EQ(resume_refusal(), misfit("'head.bias' " + why));
      change([&](Safetensors& content) {
        content.tensors["optimizer.v.head.bias"] =
            std::exchange(content.tensors["head.bias"], Tensor::of({10}, std::vector<float>(10)));
      });
      EXPECT_EQ(refusal(), "");
      EXPECT_EQ(resume_refusal(), misfit("'optimizer.v.head.bias' " + why));
      change([&](Safetensors& content) {
        content.tensors["optimizer.v.head.bias"] = Tensor::of({10}, std::vector<float>(10));
      });
    }
}

TEST_F(Checkpoint, OtherModelOrDeclarationIsRefused) {
  model.name = "vit";
  EXPECT_EQ(refusal(), file().string() + " does not fit vit: it is a checkpoint of 'sample'");
  model.name = "sample";
  model.declaration_hash = 0xab;
  EXPECT_EQ(refusal(), misfit("it was made with another declaration of sample ('5a3b1e0000000001', this is 'ab'; "
                              "'import' takes its parameters all the same)"));
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

TEST_F(Checkpoint, EveryFieldOutOfItsBoundsIsNamedBothInUseAndInResuming) {
  const std::map<std::string, std::vector<std::string>> wrong{
      {"batch", {"0", "-1", "1000001", "4611686018427387904", "9223372036854775807"}},
      {"accumulate", {"-1", "0", "1000001", "1x", ""}},
      {"epochs", {"0", "1000001", "9223372036854775807"}},  // one epoch is done
      {"learning_rate", {"-1", "inf", "nan", "2e6"}},
      {"seed", {"-1", "18446744073709551616"}},
      {"digits", {"0", "-5", "10000001", "9000000000000000000"}},
      {"limit", {"-1", "1000000001"}},
      {"fingerprint", {"-1", "4294967296"}},
      {"test_fingerprint", {"-1", "4294967296", "nan", ""}},
      {"step", {"-1", "9000000000000000000"}},
      {"epoch", {"-1", "6", "9000000000000000000"}},
      {"position", {"-1", "2147483648"}},
      {"loss_sum", {"inf", "-inf", "nan"}},
      {"correct", {"-1", "10"}},
      {"seen", {"-1", "65"}},
      {"batches", {"-1", "10"}},
      {"best_epoch", {"-1", "2"}},
      {"best_loss", {"inf", "nan"}},
      {"kernels", {std::string(33, 'x'), std::string("a\0b", 3)}},
      {"data", {std::string("a\0b", 3)}},
      {"init", {std::string("a\0b", 3)}},
      {"class_names", {std::string("a\0b", 3)}},
      {"input_crop", {"-1", "5e-4", "1.1", "nan"}},
      {"input_interpolation", {"nearest", "bicubic", ""}},
      {"input_squash", {"0", "true", ""}},
      {"input_pad", {"0", "true", "", "1"}},  // these pictures are squashed
      {"input_mean.0", {"inf", "nan", "-1e7"}},
      {"input_deviation.2", {"0", "inf", "nan", "-1"}}};
  const Safetensors sound = read_safetensors(file());
  for (const auto& [key, values] : wrong)
    for (const std::string& value : values) {
      Safetensors content = sound;
      content.metadata[key] = value;
      write_safetensors(file(), content);
      // Of two fields that contradict each other the later is named.
      const std::string named = key == "epochs" && value == "0" ? "epoch" : key;
      const std::string expected = file().string() + ": the checkpoint's '" + named + "' is damaged";
      EXPECT_EQ(refusal(), expected) << value;
      EXPECT_EQ(resume_refusal(), expected) << value;
    }
  const std::string names = "step,epoch,train_loss,train_accuracy,test_loss,test_accuracy\n";
  for (const char* rows : {"13,1,1,1,,\n", "-1,1,1,1,,\n", "12,3,1,1,,\n", "12,0,1,1,,\n", "9,1,1,1,,\n8,1,1,1,,\n"}) {
    Safetensors content = sound;
    content.metadata["curve"] = names + rows;
    write_safetensors(file(), content);
    EXPECT_CONTAINS(refusal(), "the checkpoint's 'curve' is damaged");
  }
}

TEST_F(Checkpoint, FileManyTimesAsLargeAsTheModelIsRefusedBeforeItIsRead) {
  const std::string header = R"({"head.bias":{"dtype":"U8","shape":[34359738368],"data_offsets":[0,34359738368]}})";
  const std::uint64_t length = header.size();
  spill(file(), std::string(reinterpret_cast<const char*>(&length), 8) + header);
  std::filesystem::resize_file(file(), 8 + length + (std::uintmax_t{1} << 35));  // a hole
  EXPECT_CONTAINS(refusal(), " bytes that are accepted here");
  EXPECT_CONTAINS(resume_refusal(), " bytes that are accepted here");
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
