// Parameters that come from elsewhere and go elsewhere, on the sample model.
#include "runtime/exchange.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include "runtime/arena.hpp"
#include "runtime/checkpoint.hpp"
#include "runtime/half.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

class Exchange : public testing::Test {
 protected:
  Exchange() { sample_init(parameters.floats(), 3); }
  std::string file() { return (folder / "f.safetensors").string(); }
  /// A file with the model's keys, after a change.
  void given(const std::function<void(Safetensors&)>& change) {
    export_parameters(file(), model, parameters.floats(), "F32", usage);
    Safetensors content = read_safetensors(file());
    change(content);
    write_safetensors(file(), content);
  }
  std::string started(const std::vector<std::string>& skip = {}) {
    std::ostringstream notes;
    start_from(file(), model, skip, read.floats(), notes);
    return notes.str();
  }
  std::string refusal(const std::vector<std::string>& skip = {}) {
    return sentence([&] { started(skip); });
  }
  static bool same(const Arena& a, const Arena& b, std::int64_t first = 0) {
    return std::equal(a.floats() + first, a.floats() + SAMPLE_PARAMETER_FLOATS, b.floats() + first);
  }

  const Usage usage{{.mean = {0.25, 0.5, 0.75}, .deviation = {0.1, 0.2, 0.3}, .crop = 0.875}, {"cat", "dog"}};
  TemporaryFolder folder;
  Model model = sample_model();
  Arena parameters = Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64);
  Arena read = Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64);
};

TEST_F(Exchange, ExportedFileHoldsTheModelsKeysAndShapesAndHowTheyAreUsed) {
  export_parameters(file(), model, parameters.floats(), "F32", usage);
  const Safetensors content = read_safetensors(file());
  ASSERT_EQ(content.tensors.size(), 2u);
  EXPECT_EQ(content.at("head.weight").shape, (Shape{10, 784}));
  EXPECT_EQ(content.at("head.weight").dtype, "F32");
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{{"class_names", "cat\ndog"},
                                                                  {"format", "pt"},
                                                                  {"input_crop", "0.875"},
                                                                  {"input_deviation.0", "0.1"},
                                                                  {"input_deviation.1", "0.2"},
                                                                  {"input_deviation.2", "0.3"},
                                                                  {"input_mean.0", "0.25"},
                                                                  {"input_mean.1", "0.5"},
                                                                  {"input_mean.2", "0.75"}}));
  EXPECT_EQ(started(), "");
  EXPECT_TRUE(same(parameters, read));
}

TEST_F(Exchange, HowParametersAreUsedTravelsThroughExportAndImport) {
  export_parameters(file(), model, parameters.floats(), "F32", usage);
  std::ostringstream notes;
  import_parameters(file(), folder / "run", model, {}, 1, notes);
  const Loaded loaded = load_parameters(folder / "run/checkpoint.safetensors", model, read.floats());
  EXPECT_FALSE(loaded.state.has_value());
  ASSERT_TRUE(loaded.usage.has_value());
  EXPECT_EQ(loaded.usage->input.mean, usage.input.mean);
  EXPECT_EQ(loaded.usage->input.deviation, usage.input.deviation);
  EXPECT_EQ(loaded.usage->input.crop, usage.input.crop);
  EXPECT_EQ(loaded.usage->classes, usage.classes);
  given([](Safetensors& content) { content.metadata["input_deviation.1"] = "0"; });
  EXPECT_EQ(refusal(), file() + ": the checkpoint's 'input_deviation.1' is damaged");
}

TEST_F(Exchange, FileThatDoesNotSayHowItIsUsedIsUsedAsDeclared) {
  given([](Safetensors& content) { content.metadata.clear(); });
  std::ostringstream notes;
  import_parameters(file(), folder / "run", model, {}, 1, notes);
  EXPECT_FALSE(load_parameters(folder / "run/checkpoint.safetensors", model, read.floats()).usage.has_value());
}

TEST_F(Exchange, HalvesAreTheNearestOnesAndComeBackAsSuch) {
  for (const char* dtype : {"F16", "BF16"}) {
    export_parameters(file(), model, parameters.floats(), dtype, usage);
    EXPECT_EQ(read_safetensors(file()).at("head.weight").dtype, dtype);
    started();
    for (int i = 16; i < 200; ++i) {
      const float value = parameters.floats()[i];
      EXPECT_EQ(read.floats()[i],
                dtype == std::string("F16") ? from_float16(to_float16(value)) : from_bfloat16(to_bfloat16(value)));
    }
  }
}

TEST_F(Exchange, NumberThatTheTypeCannotHoldIsNamedAndNothingIsWritten) {
  parameters.floats()[20] = 70000;
  EXPECT_EQ(sentence([&] { export_parameters(file(), model, parameters.floats(), "F16", usage); }),
            "cannot write " + file() +
                " as F16: 'head.weight' holds 70000, which is too large for it (F32 and BF16 reach further)");
  EXPECT_EQ(sentence([&] { export_parameters(file(), model, parameters.floats(), "BF16", usage); }), "");
  std::filesystem::remove(file());
  parameters.floats()[20] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_CONTAINS(sentence([&] { export_parameters(file(), model, parameters.floats(), "F32", usage); }),
                  "'head.weight' holds nan");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(Exchange, HeadOfAnotherNumberOfClassesIsRefusedWithTheWayOut) {
  given([](Safetensors& content) {
    content.tensors["head.weight"] = Tensor::of({1000, 784}, std::vector<float>(784000));
    content.tensors["head.bias"] = Tensor::of({1000}, std::vector<float>(1000));
  });
  EXPECT_CONTAINS(refusal(), "'head.weight' is [CLASSES=1000, IH*IW=784], where [CLASSES=10, IH*IW=784] is needed");
  EXPECT_CONTAINS(refusal(), "\n  --skip 'head.*' leaves what does not fit at its starting values");
  std::fill(read.floats(), read.floats() + SAMPLE_PARAMETER_FLOATS, 4.0f);
  EXPECT_EQ(started({"head.*"}),
            "head.bias [CLASSES=10] keeps its starting value\nhead.weight [CLASSES=10, IH*IW=784] keeps its starting "
            "value\n");
  EXPECT_EQ(read.floats()[0], 4);
}

TEST_F(Exchange, WhatIsSkippedMayBeMissingOrUnknown) {
  given([](Safetensors& content) {
    content.tensors.erase("head.bias");
    content.tensors["extra.scale"] = Tensor::of({1}, std::vector<float>{1});
  });
  EXPECT_CONTAINS(refusal(), "2 differences");
  EXPECT_CONTAINS(refusal({"head.bias"}), "it holds 'extra.scale' [1], which sample does not have");
  EXPECT_EQ(refusal({"head.bias", "extra.*"}), "");
  EXPECT_TRUE(same(parameters, read, 16));
}

TEST_F(Exchange, SkipThatMeansNothingIsAnError) {
  given([](Safetensors&) {});
  EXPECT_EQ(refusal({"haed.*"}), file() + " does not fit sample: neither has anything that --skip 'haed.*' could mean");
}

TEST_F(Exchange, CheckpointOfAnotherDeclarationIsTakenWithoutItsOptimiser) {
  const Arena optimizer = Arena::of_floats(SAMPLE_OPTIMIZER_FLOATS, 64);
  model.declaration_hash = 0xab;
  model.name = "other";
  save_checkpoint(file(), model, parameters.floats(), optimizer.floats(), {});
  model = sample_model();
  EXPECT_EQ(started(), "");
  EXPECT_TRUE(same(parameters, read));
}

TEST_F(Exchange, AveragedParametersAreTakenOfACheckpointThatHasThem) {
  const Arena average = Arena::of_floats(SAMPLE_PARAMETER_FLOATS, 64);
  sample_init(average.floats(), 9);
  model.optimizer_state = {"average."};
  TrainingState state;
  state.step = 1;
  save_checkpoint(file(), model, parameters.floats(), average.floats(), state);
  started();
  EXPECT_TRUE(same(average, read));
  state.step = 0;
  save_checkpoint(file(), model, parameters.floats(), average.floats(), state);
  started();
  EXPECT_TRUE(same(parameters, read)) << "before the first step there is no average";
}

TEST_F(Exchange, PositionTableOfAnotherGridIsResampledAndTheNoteSaysSo) {
  const tessera_parameter rows[] = {{"pos_embed", 3, 0, {1, 17, 2}, 0, "[1, N+1=17, D=2]"}};
  model.parameters = rows;
  model.parameter_floats = 48;
  model.patches = {4, 4};
  Safetensors content;
  std::vector<float> table(10, 3);
  content.tensors["pos_embed"] = Tensor::of({1, 5, 2}, table);
  write_safetensors(file(), content);
  EXPECT_EQ(started(), "pos_embed is resampled (bicubic) from 2x2 to 4x4 patches, 1 row in front kept\n");
  for (int i = 0; i < 34; ++i) EXPECT_NEAR(read.floats()[i], 3, 1e-5);
  std::ostringstream notes;
  load_parameters(file(), model, read.floats(), notes);
  EXPECT_CONTAINS(notes.str(), "pos_embed is resampled");

  content.tensors["pos_embed"] = Tensor::of({1, 7, 2}, std::vector<float>(14));
  write_safetensors(file(), content);
  EXPECT_CONTAINS(
      refusal(),
      "'pos_embed' is [1, N+1=7, D=2], where [1, N+1=17, D=2] is needed (no grid of patches has so many tokens)");

  // As many tokens, but of another grid.
  table.assign(34, 5);
  content.tensors["pos_embed"] = Tensor::of({1, 17, 2}, table);
  content.metadata["patch_grid"] = "2x8";
  write_safetensors(file(), content);
  EXPECT_EQ(started(), "pos_embed is resampled (bicubic) from 2x8 to 4x4 patches, 1 row in front kept\n");
  content.metadata["patch_grid"] = "4x4";
  write_safetensors(file(), content);
  EXPECT_EQ(started(), "");
}

TEST_F(Exchange, TableOfRelativeBiasesOfAnotherGridIsResampledAndTheNoteSaysSo) {
  const char* const key = "blocks.0.attn.relative_position_bias_table";
  const tessera_parameter rows[] = {{key, 2, 0, {52, 2}, 0, "[W=52, H=2]"}};  // 7 x 7 and 3
  model.parameters = rows;
  model.parameter_floats = 112;
  model.patches = {4, 4};
  Safetensors content;
  std::vector<float> table(24, 3);  // 3 x 3 and 3
  table.back() = 7;
  content.tensors[key] = Tensor::of({12, 2}, table);
  write_safetensors(file(), content);
  EXPECT_EQ(started(), text(key, " is resampled (linear) from 2x2 to 4x4 patches, 3 rows behind kept\n"));
  for (int i = 0; i < 103; ++i) EXPECT_NEAR(read.floats()[i], 3, 1e-5);
  EXPECT_EQ(read.floats()[103], 7);

  content.tensors[key] = Tensor::of({13, 2}, std::vector<float>(26));
  write_safetensors(file(), content);
  EXPECT_CONTAINS(refusal(), text("'", key,
                                  "' is [W=13, H=2], where [W=52, H=2] is needed (no grid of patches has so many "
                                  "distances)"));
}

TEST_F(Exchange, ImportMakesACheckpointThatCanBeEvaluatedAndKeepsTheOneBefore) {
  given([](Safetensors&) {});
  const std::filesystem::path out = folder / "run";
  std::ostringstream notes;
  import_parameters(file(), out, model, {}, 1, notes);
  EXPECT_CONTAINS(notes.str(), "holds the parameters of " + file());
  EXPECT_FALSE(load_parameters(out / "checkpoint.safetensors", model, read.floats()).state.has_value());
  EXPECT_TRUE(same(parameters, read));
  const std::string first = slurp(out / "checkpoint.safetensors");
  import_parameters(file(), out, model, {"head.bias"}, 1, notes);
  EXPECT_EQ(slurp(out / "checkpoint.previous.safetensors"), first);
}

// The same as a person meets it, in the program.

Result train(const std::string& out, std::vector<std::string> more) {
  std::vector<std::string> arguments{"train", "--digits", "60", "--epochs", "1", "--out", out};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return sample(arguments);
}

TEST_F(Exchange, ProgramExportsImportsAndEvaluatesTheSame) {
  const std::string run = (folder / "run").string(), other = (folder / "other").string();
  ASSERT_EQ(train(run, {}).code, 0);
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const Result exported = sample({"export", "--out", run, "--dtype", dtype, "-o", file()});
    EXPECT_EQ(exported.code, 0) << exported.err;
    const Result imported = sample({"import", file(), "--out", other});
    EXPECT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(sample({"eval", "--out", other}).code, 0);
    if (dtype == std::string("f32")) {
      EXPECT_EQ(sample({"eval", "--out", other, "--digits", "60"}).out, sample({"eval", "--out", run}).out);
    }
  }
  EXPECT_EQ(sample({"export", "--out", run, "--dtype", "f8", "-o", file()}).code, 2);
}

TEST_F(Exchange, ProgramExportsTheModelAsAnOnnxFile) {
  given([](Safetensors&) {});
  const std::string run = (folder / "run").string(), onnx = (folder / "model.onnx").string();
  ASSERT_EQ(sample({"import", file(), "--out", run}).code, 0);
  const Result exported = sample({"export", "--out", run, "--onnx", onnx});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(exported.out,
            onnx + " holds the forward pass of sample with the parameters of " + run + "/checkpoint.safetensors\n");
  const std::string bytes = slurp(onnx);
  const Bytes head = bytes_of(read_safetensors(file()).at("head.weight"));
  EXPECT_NE(bytes.find(std::string(head.begin(), head.end())), std::string::npos);
  EXPECT_CONTAINS(bytes, "head.weight");
  ASSERT_EQ(sample({"export", "--out", run, "--onnx", onnx}).code, 0);
  EXPECT_EQ(slurp(onnx), bytes);
  for (const auto& [arguments, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"export", "--out", run}, "--to FILE or --onnx FILE is required"},
           {{"export", "--out", run, "--onnx", onnx, "-o", file()}, "excludes"},
           {{"export", "--out", run, "--onnx", onnx, "--dtype", "f16"}, "excludes"}}) {
    const Result refused = sample(arguments);
    EXPECT_EQ(refused.code, 2);
    EXPECT_CONTAINS(refused.err, part);
  }
}

TEST_F(Exchange, TrainingStartsFromAFileAndGoesOnFromItsOwnCheckpoint) {
  parameters.floats()[0] = 100;  // all images are taken for a 0, and one epoch does not change that
  given([](Safetensors&) {});
  const std::string run = (folder / "run").string();
  const Result trained = train(run, {"--init", file()});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_CONTAINS(trained.out, "starting from the parameters of " + file());
  load_parameters(run + "/checkpoint.safetensors", model, read.floats());
  EXPECT_NEAR(read.floats()[0], 100, 1);
  const Result resumed =
      sample({"train", "--resume", "--init", file(), "--digits", "60", "--epochs", "2", "--out", run});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_CONTAINS(resumed.out, "going on after step");
  EXPECT_EQ(resumed.out.find("starting from"), std::string::npos);
}

TEST_F(Exchange, RunThatWasStartedFromAFileAndNotTrainedYetKeepsItsParameters) {
  parameters.floats()[0] = 100;
  given([](Safetensors&) {});
  const std::string run = (folder / "run").string();
  ASSERT_EQ(sample({"train", "--digits", "60", "--epochs", "0", "--init", file(), "--out", run}).code, 0);
  ASSERT_EQ(sample({"train", "--resume", "--epochs", "1", "--out", run}).code, 0);
  load_parameters(run + "/checkpoint.safetensors", model, read.floats());
  EXPECT_NEAR(read.floats()[0], 100, 1);
}

TEST_F(Exchange, WhatCannotBeDoneIsAnErrorWithoutAPartialFile) {
  given([](Safetensors&) {});
  const std::string run = (folder / "run").string(), text = (folder / "text").string();
  ASSERT_EQ(sample({"import", file(), "--out", run}).code, 0);
  spill(text, "no safetensors");
  const std::string before = slurp(run + "/checkpoint.safetensors");
  struct Case {
    std::vector<std::string> arguments;
    std::string part;
    std::int64_t file_bytes = -1;
  };
  for (const Case& one : std::vector<Case>{
           {{"export", "--out", run, "-o", (folder / "no/file").string()},
            "cannot write " + (folder / "no/file").string()},
           {{"export", "--out", run, "-o", run}, "cannot write " + run},
           {{"export", "--out", run, "-o", "/proc/file"}, "cannot write /proc/file"},
           {{"export", "--out", run, "-o", (folder / "new").string()},
            "cannot write " + (folder / "new").string(),
            20000},
           {{"export", "--out", (folder / "none").string(), "-o", text}, "cannot open "},
           {{"export", "--out", run, "--onnx", run + "/checkpoint.safetensors"}, "it is a safetensors file"},
           {{"export", "--out", run, "--onnx", file()}, "it is a safetensors file"},
           {{"export", "--out", run, "--onnx", run}, "cannot write " + run},
           {{"export", "--out", run, "--onnx", "/proc/file"}, "cannot write /proc/file"},
           {{"export", "--out", run, "--onnx", (folder / "new").string()},
            "cannot write " + (folder / "new").string(),
            20000},
           {{"import", text, "--out", run}, "is not a safetensors file"},
           {{"import", (folder / "none").string(), "--out", run}, "cannot open "},
           {{"import", file(), "--out", "/proc/run"}, "cannot make the folder /proc/run"},
           {{"import", file(), "--out", text}, "cannot make the folder " + text},
           {{"import", file(), "--out", (folder / "full").string()}, "cannot write ", 20000},
           {{"import", file(), "--skip", "tail.*", "--out", run}, "--skip 'tail.*'"},
           {{"train", "--init", text, "--out", (folder / "a").string()}, "is not a safetensors file"},
           {{"train", "--init", folder.path().string(), "--out", (folder / "a").string()}, "it is a folder"},
       }) {
    const Result result = sample(one.arguments, {.file_bytes = one.file_bytes, .stdout_to = ""});
    EXPECT_EQ(result.code, 1) << one.part;
    EXPECT_CONTAINS(result.err, one.part);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_EQ(slurp(run + "/checkpoint.safetensors"), before);
  EXPECT_EQ(slurp(text), "no safetensors");
  EXPECT_EQ(partial_files(folder.path()), std::vector<std::string>());
  EXPECT_FALSE(std::filesystem::exists(folder / "full/checkpoint.safetensors"));
}

}  // namespace
}  // namespace tessera::runtime
