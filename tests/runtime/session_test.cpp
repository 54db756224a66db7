// What a training run does when things go wrong, without a program around it.
#include "runtime/session.hpp"

#include <sys/stat.h>

#include <cmath>
#include <limits>
#include <new>

#include "runtime/digits.hpp"
#include "runtime/divergence.hpp"
#include "runtime/image.hpp"
#include "runtime/safetensors.hpp"
#include "tests/runtime/helpers.hpp"
#include "tests/runtime/sample_table.hpp"

namespace tessera::runtime {
namespace {

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    options.out = folder / "run";
    options.digits = 120;
    options.checkpoint_every = 2;
    recipe.batch = 20;
    recipe.epochs = 2;
    recipe.learning_rate = 0.001;
  }
  /// Trains; the loss of `broken_loss`, the parameters after `broken_update` and the bias' gradient of
  /// `broken_gradient` (steps from 1) are not numbers.
  int train(std::int64_t broken_loss = -1, std::int64_t broken_update = -1, std::int64_t broken_gradient = -1) {
    Session run(model, recipe, options);
    if (run.is_new()) run.check(sample_init(run.parameters(), 1));
    while (run.epoch() < run.recipe().epochs) {
      run.begin_epoch();
      while (const Batch* batch = run.next_batch()) {
        float loss = 0;
        const std::int64_t step = run.step();
        run.check(sample_loss_and_gradients(run.parameters(), run.packed(), batch->images, batch->labels, batch->size,
                                            1, step, run.outputs(), &loss, run.gradients(), run.scratch()));
        if (step == broken_loss) loss = std::numeric_limits<float>::quiet_NaN();
        if (step == broken_gradient) run.gradients()[3] = std::numeric_limits<float>::infinity();
        run.count(loss);
        run.check(sample_update(run.parameters(), run.gradients(), run.optimizer(), step, 0.001f));
        if (step == broken_update) run.parameters()[20] = std::numeric_limits<float>::infinity();
        if (!run.record()) return run.stop();
      }
      run.end_epoch();
    }
    return run.finish();
  }
  /// Leaves behind what a run leaves that is killed before it saves.
  void kill_before_the_first_checkpoint() {
    const std::string start = options.out / "start.safetensors";
    std::string content;
    {
      const Session run(model, recipe, options);
      content = slurp(start);
    }
    EXPECT_FALSE(std::filesystem::exists(start));
    std::filesystem::create_directories(options.out);
    spill(start, content);
  }
  /// Changes a field of the checkpoint, or removes it.
  void change(const std::string& key, const std::optional<std::string>& value) {
    Safetensors content = read_safetensors(checkpoint());
    content.metadata.erase(key);
    if (value) content.metadata[key] = *value;
    write_safetensors(checkpoint(), content);
  }
  std::string checkpoint() { return (options.out / "checkpoint.safetensors").string(); }

  TemporaryFolder folder;
  Model model = sample_model();
  Recipe recipe;
  TrainOptions options;
};

TEST_F(SessionTest, WritesEverythingItPromises) {
  EXPECT_EQ(train(), 0);
  for (const char* file :
       {"checkpoint.safetensors", "curve.csv", "curve.svg", "predictions.svg", "report.txt", "report.html"})
    EXPECT_GT(std::filesystem::file_size(options.out / file), 100u) << file;
  const std::string report = slurp(options.out / "report.txt");
  EXPECT_CONTAINS(report, "images [B, 784]");
  EXPECT_EQ(report.find("\nRanks"), std::string::npos) << "one rank has nobody to send anything to";
}

TEST_F(SessionTest, TrainingStopsWhenPatienceIsOverAndTheBestEpochIsKept) {
  recipe.patience = 2;
  recipe.epochs = 40;
  Session run(model, recipe, options);
  run.check(sample_init(run.parameters(), 1));
  std::int64_t epochs = 0;
  for (; epochs < recipe.epochs && run.improves(); ++epochs) {
    run.begin_epoch();
    while (const Batch* batch = run.next_batch()) {
      float loss = 0;
      run.check(sample_loss_and_gradients(run.parameters(), run.packed(), batch->images, batch->labels, batch->size, 1,
                                          run.step(), run.outputs(), &loss, run.gradients(), run.scratch()));
      run.count(loss);
      // Three epochs of learning, then away from what was learned.
      const float rate = epochs < 3 ? 0.001f : -0.01f;
      run.check(sample_update(run.parameters(), run.gradients(), run.optimizer(), run.step(), rate));
      ASSERT_TRUE(run.record());
    }
    run.end_epoch();
  }
  EXPECT_EQ(epochs, 5);
  EXPECT_EQ(read_safetensors(options.out / "best.safetensors").metadata.at("epoch"), "3");
  EXPECT_EQ(read_safetensors(checkpoint()).metadata.at("best_epoch"), "3");
}

TEST_F(SessionTest, BatchesOfAStepAreSummedAlongTheTree) {
  options.digits = 115;  // batches of 20, five of them a step, and then one of 15
  recipe.accumulate = 5;
  recipe.epochs = 1;
  Session run(model, recipe, options);
  run.check(sample_init(run.parameters(), 1));
  run.begin_epoch();
  std::vector<std::vector<float>> parts;
  std::vector<std::size_t> steps;
  while (const Batch* batch = run.next_batch()) {
    float loss = 0;
    run.check(sample_loss_and_gradients(run.parameters(), run.packed(), batch->images, batch->labels, batch->size, 1,
                                        run.part(), run.outputs(), &loss, run.gradients(), run.scratch()));
    parts.emplace_back(run.gradients(), run.gradients() + model.parameter_floats);
    for (float& g : parts.back()) g *= static_cast<float>(batch->size);
    if (!run.gather(loss)) continue;
    const float images = parts.size() == 1 ? 15 : 100;
    for (std::size_t i = 0; i < parts[0].size(); ++i) {
      const auto at = [&](std::size_t part) { return parts[part][i]; };
      const float sum = parts.size() == 1 ? at(0) : ((at(0) + at(1)) + (at(2) + at(3))) + at(4);
      ASSERT_EQ(run.gathered()[i], sum * (1 / images)) << i;
    }
    steps.push_back(parts.size());
    parts.clear();
    ASSERT_TRUE(run.record());
  }
  EXPECT_EQ(steps, (std::vector<std::size_t>{5, 1}));
}

TEST_F(SessionTest, LossThatIsNotANumberStopsAndKeepsTheLastCheckpoint) {
  const std::string error = sentence([&] { train(5); });
  EXPECT_TRUE(
      error.starts_with("training diverged: the loss of step 5 is not a number: all layers give numbers, the "
                        "largest head, "))
      << error;
  EXPECT_TRUE(error.ends_with("; " + checkpoint() + " still holds step 4 (a smaller --lr may help)")) << error;
  EXPECT_EQ(read_safetensors(checkpoint()).metadata.at("step"), "4");
}

TEST_F(SessionTest, LossThatIsNotANumberBeforeAnyCheckpointSaysSo) {
  EXPECT_CONTAINS(sentence([&] { train(1); }), "no checkpoint was written before");
  EXPECT_FALSE(std::filesystem::exists(checkpoint()));
}

TEST_F(SessionTest, ParametersThatAreNotNumbersAreNeverSaved) {
  EXPECT_EQ(sentence([&] { train(-1, 4); }),
            "training diverged: after step 4 some parameters are not numbers, first head.weight; " + checkpoint() +
                " still holds step 2");
  EXPECT_EQ(read_safetensors(checkpoint()).metadata.at("step"), "2");
}

TEST_F(SessionTest, LossThatIsNotANumberNamesTheFirstParameterThatIsNone) {
  EXPECT_CONTAINS(sentence([&] { train(-1, 3); }),
                  "the loss of step 4 is not a number: the parameter head.weight is the first that is not a number; " +
                      checkpoint() + " still holds step 2");
}

TEST_F(SessionTest, GradientThatIsNotANumberIsNamedAndNeverReachesTheParameters) {
  const std::string error = sentence([&] { train(-1, -1, 3); });
  EXPECT_CONTAINS(error, "training diverged: the loss of step 3 is ");
  EXPECT_CONTAINS(error, ", but the gradient of head.bias is the first that is not a number; " + checkpoint() +
                             " still holds step 2 (a smaller --lr may help)");
  EXPECT_EQ(read_safetensors(checkpoint()).metadata.at("step"), "2");
}

TEST_F(SessionTest, FirstThatIsNotANumberIsThatOfTheForwardOrTheBackwardPass) {
  // As in emitted tables, offsets grow from the outputs back to the images; rows may stand in any order.
  std::vector<float> values(48);
  const tessera_parameter rows[]{
      {"middle", 1, 0, {4}, 16, "[4]"}, {"last", 1, 0, {4}, 0, "[4]"}, {"first", 1, 0, {4}, 32, "[4]"}};
  model.parameters = rows;
  EXPECT_EQ(first_not_finite(model, values.data()), "");
  EXPECT_EQ(cause_of_gradients(model, values.data()), "");
  values[19] = std::numeric_limits<float>::quiet_NaN();
  values[33] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_not_finite(model, values.data()), "first");
  EXPECT_EQ(cause_of_gradients(model, values.data()), "the gradient of middle is the first that is not a number");
}

TEST_F(SessionTest, ResumingAFinishedRunTrainsNoFurther) {
  train();
  const std::string before = slurp(checkpoint());
  options.resume = true;
  EXPECT_EQ(train(), 0);
  EXPECT_EQ(slurp(checkpoint()), before);
}

TEST_F(SessionTest, MoreEpochsGoOnWhereTheRunEndedWithTheSameBits) {
  options.epochs = 4;
  train();
  const std::string whole = slurp(checkpoint());
  options.out = folder / "second";
  options.epochs = 2;
  train();
  options.resume = true;
  options.epochs = 4;
  train();
  EXPECT_EQ(slurp(checkpoint()), whole);
}

TEST_F(SessionTest, ResumingWithOtherOptionsIsRefused) {
  train();
  options.resume = true;
  options.seed = 9;
  EXPECT_EQ(sentence([&] { train(); }),
            "the run in " + options.out.string() + " was started with --seed 1, it cannot go on with --seed 9");
  options.seed.reset();
  options.batch = 3;
  EXPECT_CONTAINS(sentence([&] { train(); }), "cannot go on with --batch 3");
  options.batch.reset();
  options.data = folder.path();
  EXPECT_CONTAINS(sentence([&] { train(); }), "was started with --data (none)");
  options.data.reset();
  options.epochs = 1;
  EXPECT_CONTAINS(sentence([&] { train(); }), "has done 2 epochs already");
}

TEST_F(SessionTest, ResumingWithOtherImagesIsRefused) {
  train();
  const std::string sound = slurp(checkpoint());
  options.resume = true;
  for (const auto& [key, which] : {std::pair{"fingerprint", "training"}, {"test_fingerprint", "test"}}) {
    spill(checkpoint(), sound);
    change(key, "1");
    EXPECT_EQ(sentence([&] { train(); }),
              text("the ", which, " images (built-in digits) are not those that the run in ", options.out.string(),
                   " was started with"));
  }
}

TEST_F(SessionTest, RunThatWasKilledBeforeItSavedIsStartedOnceMoreAndNoOther) {
  options.seed = 5;
  options.batch = 30;
  train();
  const std::string whole = slurp(checkpoint());
  // Once where there is nothing else, and once beside the checkpoint of another run, which is kept.
  for (const bool beside : {false, true}) {
    options = {};
    options.out = folder / (beside ? "beside" : "alone");
    options.digits = 120;
    std::string before;
    if (beside) {
      train();
      before = slurp(checkpoint());
    }
    options.seed = 5;
    options.batch = 30;
    kill_before_the_first_checkpoint();
    options = {};
    options.out = folder / (beside ? "beside" : "alone");
    options.resume = true;
    options.seed = 6;
    EXPECT_CONTAINS(sentence([&] { train(); }), "was started with --seed 5");
    options.seed.reset();
    EXPECT_EQ(train(), 0);
    EXPECT_TRUE(slurp(checkpoint()) == whole) << beside;
    EXPECT_FALSE(std::filesystem::exists(options.out / "start.safetensors"));
    if (beside) {
      EXPECT_TRUE(slurp(options.out / "checkpoint.previous.safetensors") == before);
    }
    EXPECT_EQ(train(), 0);  // from now on from the checkpoint
    EXPECT_TRUE(slurp(checkpoint()) == whole);
  }
}

TEST_F(SessionTest, RunThatSavedGoesOnFromItsCheckpointThoughItsStartIsStillThere) {
  train();
  const std::string whole = slurp(checkpoint());
  kill_before_the_first_checkpoint();
  options.resume = true;
  const Session run(model, recipe, options);
  EXPECT_EQ(run.step(), 13);
  EXPECT_TRUE(slurp(checkpoint()) == whole);
}

TEST_F(SessionTest, DamagedStartIsOneSentence) {
  kill_before_the_first_checkpoint();
  const std::filesystem::path start = options.out / "start.safetensors";
  options.resume = true;
  const Safetensors sound = read_safetensors(start);
  for (const auto& [key, value] : {std::pair{"seed", "-1"}, {"step", "3"}, {"format", "tessera checkpoint 1"}}) {
    Safetensors content = sound;
    content.metadata[key] = value;
    write_safetensors(start, content);
    EXPECT_TRUE(sentence([&] { train(); }).starts_with(start.string())) << key;
  }
}

TEST_F(SessionTest, AnotherInstructionSetIsRefusedUnlessItIsAskedFor) {
  train();
  options.resume = true;
  change("kernels", "avx2");
  EXPECT_EQ(sentence([&] { train(); }),
            "the run in " + options.out.string() +
                " was trained with kernels for avx2, those for scalar give other last bits: --isa-change goes on with "
                "them, TESSERA_ISA=avx2 with the same where this machine has it");
  options.isa_change = true;
  EXPECT_EQ(train(), 0);
  options.isa_change = false;
  EXPECT_EQ(train(), 0);  // it is a run of these kernels now
  for (const std::optional<std::string>& other : {std::optional<std::string>("cuda"), std::optional<std::string>()}) {
    change("kernels", other);  // a device is chosen on the command line; checkpoints of 0.1 do not say
    EXPECT_EQ(train(), 0);
  }
  model.isa = [] { return ""; };  // TESSERA_ISA is unknown: kernels say so in their own words
  EXPECT_EQ(train(), 0);
}

TEST_F(SessionTest, ParametersToStartFromAreNotIgnoredInSilence) {
  train();
  const std::filesystem::path weights = folder / "weights";
  std::filesystem::copy_file(checkpoint(), weights);
  options.resume = true;
  options.init = weights;
  EXPECT_EQ(sentence([&] { train(); }), "the run in " + options.out.string() +
                                            " was started with --init (none), it cannot go on with --init " +
                                            weights.string());
  change("init", {});
  EXPECT_CONTAINS(sentence([&] { train(); }), "goes on with its own parameters: --init is for a run that starts");
  options.out = folder / "second";
  options.resume = false;
  options.skip = {"head.bias"};
  EXPECT_EQ(train(), 0);
  const std::string whole = slurp(checkpoint());
  options.resume = true;
  EXPECT_EQ(train(), 0);
  options.skip = {"head.*"};
  EXPECT_CONTAINS(sentence([&] { train(); }), "was started with another --skip");
  // As it began, where it has not saved.
  options.out = folder / "third";
  options.resume = false;
  options.skip = {"head.bias"};
  kill_before_the_first_checkpoint();
  options.init.clear();
  options.skip.clear();
  options.resume = true;
  EXPECT_EQ(train(), 0);
  EXPECT_TRUE(slurp(checkpoint()) == whole);
}

TEST_F(SessionTest, LinkToNothingIsNotReplaced) {
  std::filesystem::create_directories(options.out);
  std::filesystem::create_symlink("/nowhere/checkpoint", checkpoint());
  for (const bool resume : {false, true}) {
    options.resume = resume;
    EXPECT_EQ(sentence([&] { train(); }),
              "cannot write " + checkpoint() + ": it is a link to a file that is not there");
    EXPECT_TRUE(std::filesystem::is_symlink(checkpoint()));
  }
}

TEST_F(SessionTest, ImagesThatHaveMovedAreFoundByTheirNewFolderAlone) {
  const std::filesystem::path old = folder / "old", moved = folder / "moved";
  for (const char* split : {"train", "test"})
    for (const char* name : {"a", "b"}) {
      const std::filesystem::path to = old / split / name;
      std::filesystem::create_directories(to);
      for (int i = 0; i < 3; ++i) {
        const Bytes png = encode_png(Bytes(784, static_cast<std::uint8_t>(40 * i + *name)), 1, 28, 28);
        spill(to / text(i, ".png"), std::string(png.begin(), png.end()));
      }
    }
  options.digits.reset();
  options.data = old;
  train();
  std::filesystem::rename(old, moved);
  options.resume = true;
  options.data.reset();
  EXPECT_EQ(sentence([&] { train(); }), "the images of the run in " + options.out.string() + " are no longer in " +
                                            old.string() + ": --data says where they are now");
  options.data = moved;
  EXPECT_EQ(train(), 0);
  options.data.reset();
  EXPECT_EQ(train(), 0);  // the run knows it now
  // The class of a test image, which training never sees.
  std::filesystem::rename(moved / "test/a/0.png", moved / "test/b/9.png");
  EXPECT_CONTAINS(sentence([&] { train(); }), "the test images (the image folder ");
}

TEST_F(SessionTest, FolderThatACheckpointCannotNameIsRefusedBeforeTraining) {
  options.data = folder / "\xe9t\xe9";
  EXPECT_CONTAINS(sentence([&] { train(); }), " cannot be kept in a checkpoint, whose texts are UTF-8: ");
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

TEST_F(SessionTest, PlaceThatNoRunOverTheseImagesReachesIsRefused) {
  train();
  const Safetensors sound = read_safetensors(checkpoint());
  options.resume = true;
  for (const auto& [key, value] : {std::pair{"position", "7"}, {"position", "140"}, {"step", "13"}}) {
    Safetensors content = sound;
    content.metadata[key] = value;
    write_safetensors(checkpoint(), content);
    EXPECT_EQ(sentence([&] { train(); }), checkpoint() + ": the checkpoint's '" + key + "' is damaged") << value;
  }
}

TEST_F(SessionTest, SizesThatDoNotFitInMemoryAreNotTaken) {
  for (const std::int64_t batch : {std::int64_t{1} << 62, INT64_MAX, -(std::int64_t{1} << 62)}) {
    recipe.batch = batch;
    EXPECT_THROW(Batches(draw_digits(1, 1, Split::train), recipe, 10, 64), std::bad_alloc) << batch;
  }
  EXPECT_THROW(Arena::of_floats(std::int64_t{1} << 61, 64), std::bad_alloc);
  EXPECT_THROW(Arena(-1, 64), std::bad_alloc);
}

TEST_F(SessionTest, NewRunKeepsTheCheckpointOfTheOneBefore) {
  train();
  const std::string before = slurp(checkpoint());
  options.seed = 2;
  train();
  EXPECT_EQ(slurp(options.out / "checkpoint.previous.safetensors"), before);
}

TEST_F(SessionTest, RunThatDivergesBeforeItSavesMovesNoCheckpoint) {
  train();
  options.seed = 2;
  train();
  const std::string last = slurp(checkpoint()), first = slurp(options.out / "checkpoint.previous.safetensors");
  EXPECT_CONTAINS(sentence([&] { train(1); }), "training diverged");
  EXPECT_EQ(slurp(checkpoint()), last);
  EXPECT_EQ(slurp(options.out / "checkpoint.previous.safetensors"), first);
}

TEST_F(SessionTest, SecondRunInTheSameFolderIsRefusedAndToldWhoHoldsIt) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  {
    const Session first(model, recipe, options);
    EXPECT_EQ(sentence([&] { Session second(model, recipe, options); }),
              text("another run is training in ", options.out.string(), " (process ", ::getpid(), " on ", host, ")"));
  }
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

TEST_F(SessionTest, LockOfARunThatWasKilledHoldsNobody) {
  std::filesystem::create_directories(options.out);
  spill(options.out / "run.lock", "process 1 on another host\n");
  EXPECT_EQ(train(), 0);
}

TEST_F(SessionTest, LockThatSomebodyRemovesHoldsAllTheSame) {
  const Session first(model, recipe, options);
  std::filesystem::remove(options.out / "run.lock");
  EXPECT_EQ(sentence([&] { Session second(model, recipe, options); }),
            "another run is training in " + options.out.string());
}

TEST_F(SessionTest, WhatIsNoLockIsNotWrittenOver) {
  std::filesystem::create_directories(options.out);
  const std::filesystem::path lock = options.out / "run.lock", weights = folder / "weights";
  spill(weights, std::string(1000, 'w'));
  std::filesystem::create_hard_link(weights, lock);
  EXPECT_EQ(sentence([&] { train(); }), "cannot write " + lock.string() + ": it is no lock of a run");
  EXPECT_EQ(slurp(weights), std::string(1000, 'w'));
  std::filesystem::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_EQ(sentence([&] { train(); }), "cannot write " + lock.string() + ": it is no lock of a run");
}

TEST_F(SessionTest, ImagesThatDoNotFitTheModelAreRefused) {
  model.image_shape[1] = 32;
  EXPECT_EQ(sentence([&] { train(); }), "sample reads images of 1x32x28, the built-in digits have 1x28x28");
  model.image_shape[1] = 28;
  model.classes = 5;
  EXPECT_EQ(sentence([&] { train(); }), "sample tells 5 classes apart, the built-in digits have 10");
}

TEST_F(SessionTest, ErrorCodesOfTheModelAreSaidInItsWords) {
  const Session run(model, recipe, options);
  EXPECT_EQ(sentence([&] { run.check(1); }), "sample cannot go on: the batch is empty");
}

TEST_F(SessionTest, CurveHasOneTestResultAnEpochAndRowsInBetween) {
  train();
  const Curve curve = parse_curve_csv(slurp(options.out / "curve.csv"), "curve");
  ASSERT_EQ(curve.size(), 12u);  // 6 steps an epoch, fewer than 20: a row each
  EXPECT_TRUE(curve[5].test_loss && curve[11].test_accuracy);
  EXPECT_FALSE(curve[4].test_loss);
  EXPECT_LT(curve[11].train_loss, curve[0].train_loss);
}

}  // namespace
}  // namespace tessera::runtime
