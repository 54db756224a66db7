// What a training run does when things go wrong, without a program around it.
#include "runtime/session.hpp"

#include <cmath>
#include <limits>
#include <new>

#include "runtime/digits.hpp"
#include "runtime/divergence.hpp"
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
  EXPECT_CONTAINS(slurp(options.out / "report.txt"), "images [B, 784]");
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
  Safetensors content = read_safetensors(checkpoint());
  content.metadata["fingerprint"] = "1";
  write_safetensors(checkpoint(), content);
  options.resume = true;
  EXPECT_CONTAINS(sentence([&] { train(); }), "are not those that the run");
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
  EXPECT_TRUE(std::filesystem::is_empty(options.out));
}

TEST_F(SessionTest, LockOfARunThatWasKilledHoldsNobody) {
  std::filesystem::create_directories(options.out);
  spill(options.out / "run.lock", "process 1 on another host\n");
  EXPECT_EQ(train(), 0);
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
