// The emitted CUDA files, run as they are on the CPU, against the scalar CPU back end: outputs, loss, every gradient,
// attention maps and three steps of training, in every order of blocks and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/cuda/cuda_models.hpp"
#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "tests/cuda/planned.hpp"
#include "tests/cuda/toy_runs.hpp"

namespace {

using tessera::cuda_host::DeviceArray;
using tessera::cuda_host::Options;
using tessera::cuda_host::Schedule;
using namespace tessera::test;

using Models = ToyModels<DeviceArray>;

/// |mine - theirs| / |theirs|, root mean squares. Of nothing it is not a number.
double error(const Floats& mine, const Floats& theirs) {
  double differences = 0, all = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const double x = mine[i], y = theirs[i];
    differences += (x - y) * (x - y);
    all += y * y;
  }
  return std::sqrt(differences / all);
}

/// |mine - theirs| / (1 + |theirs|), the largest, and where the numbers are small, all of them by their own size.
void expect_near(const Floats& mine, const Floats& theirs, double tolerance, const std::string& what) {
  ASSERT_EQ(mine.size(), theirs.size()) << what;
  for (std::size_t i = 0; i < mine.size(); ++i)
    ASSERT_NEAR(mine[i], theirs[i], tolerance * (1 + std::fabs(theirs[i]))) << what << " at " << i;
  if (theirs.empty()) return;
  EXPECT_LT(error(mine, theirs), tolerance) << what;
}

/// On the GPU, on one with warpgroups or on one without, with the same bits in every order of blocks and threads.
Results in_every_order(const Model& m, const Floats& parameters, const Floats& images, bool warpgroups = false,
                       int products_at_once = Options{}.products_at_once) {
  std::vector<Results> runs;
  for (Options options :
       {Options{Schedule::fixed, 1, false, warpgroups}, Options{Schedule::reversed, 1, true, warpgroups},
        Options{Schedule::random, 11, true, warpgroups}}) {
    options.products_at_once = products_at_once;
    tessera::cuda_host::use(options);
    runs.push_back(m.on_gpu(m, parameters, images, some_labels(m).data()));
  }
  tessera::cuda_host::use({});
  const Results& gpu = runs.front();
  for (std::size_t i = 1; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].gradients, gpu.gradients) << "bits differ from schedule to schedule";
    EXPECT_EQ(runs[i].parameters, gpu.parameters) << "bits differ from schedule to schedule";
    EXPECT_EQ(runs[i].maps, gpu.maps) << "bits differ from schedule to schedule";
    EXPECT_EQ(runs[i].magnitudes, gpu.magnitudes);
  }
  return gpu;
}

using CudaModels = testing::TestWithParam<Model>;

TEST_P(CudaModels, GiveTheCpusNumbersInEveryOrderOfBlocksAndThreads) {
  const Model& m = GetParam();
  const Floats parameters = starting_parameters(m), images = some_images(m);
  const Results cpu = m.on_cpu(m, parameters, images, some_labels(m).data()),
                gpu = in_every_order(m, parameters, images);
  expect_near(gpu.forward, cpu.forward, 1e-5, "outputs");
  expect_near(gpu.evaluated, cpu.evaluated, 1e-5, "outputs of evaluate");
  expect_near(gpu.evaluated_loss, cpu.evaluated_loss, 1e-5, "loss");
  expect_near(gpu.image_gradients, cpu.image_gradients, 1e-5, "gradients of the images");
  expect_near(gpu.maps, cpu.maps, 1e-5, "attention maps");
  expect_near(gpu.magnitudes, cpu.magnitudes, 1e-5, "magnitudes");
  expect_near(gpu.outputs, cpu.outputs, 1e-4, "outputs of the third step");
  expect_near(gpu.loss, cpu.loss, 1e-4, "loss of the third step");
  expect_near(gpu.gradients, cpu.gradients, 1e-4, "gradients of the third step");
  expect_near(gpu.optimizer, cpu.optimizer, 1e-4, "moments after three steps");
  // Adam divides a gradient by its own size: where it is nothing but rounding, as with the bias of a softmax' keys or
  // of a convolution before a group norm, so is the parameter's step, of either in its own direction.
  for (std::size_t i = 0; i < cpu.parameters.size(); ++i) {
    const bool moved = cpu.optimizer[cpu.parameters.size() + i] > 1e-12f;
    ASSERT_NEAR(gpu.parameters[i], cpu.parameters[i], moved ? 1e-4 : 2 * 3 * rate) << "parameter " << i;
  }
}

class CudaModelsOfBf16 : public testing::TestWithParam<std::tuple<Model, bool>> {};

TEST_P(CudaModelsOfBf16, StayAsNearToTheCpusNumbersAsBf16DoesInEveryOrderOfBlocksAndThreads) {
  const auto& [m, warpgroups] = GetParam();
  const Floats parameters = starting_parameters(m), images = some_images(m);
  const Results cpu = m.on_cpu(m, parameters, images, some_labels(m).data()),
                gpu = in_every_order(m, parameters, images, warpgroups);
  // Its cosines are multiplied by 10 and more before their exponentials are taken, and with them what bf16 has rounded.
  const bool scores_are_tenfold = std::string_view(m.name).starts_with("toy_swin_v2");
  struct {
    const char* what;
    const Floats &mine, &theirs;
    double most;
  } const all[] = {
      {"outputs", gpu.forward, cpu.forward, 1e-2},
      {"outputs of evaluate", gpu.evaluated, cpu.evaluated, 1e-2},
      {"loss", gpu.evaluated_loss, cpu.evaluated_loss, 1e-2},
      {"gradients of the images", gpu.image_gradients, cpu.image_gradients, scores_are_tenfold ? 2e-2 : 1e-2},
      {"attention maps", gpu.maps, cpu.maps, 1e-2},
      {"magnitudes", gpu.magnitudes, cpu.magnitudes, 1e-2},
      {"outputs of the third step", gpu.outputs, cpu.outputs, 5e-2},
      {"loss of the third step", gpu.loss, cpu.loss, 5e-2},
      {"gradients of the third step", gpu.gradients, cpu.gradients, 5e-2},
      {"moments after three steps", gpu.optimizer, cpu.optimizer, 5e-2},
      {"parameters after three steps", gpu.parameters, cpu.parameters, 5e-2}};
  for (const auto& [what, mine, theirs, most] : all) {
    ASSERT_EQ(mine.size(), theirs.size());
    if (&theirs == &cpu.maps && m.map_floats == 0) continue;  // the model has none
    EXPECT_LT(error(mine, theirs), most) << what;
    EXPECT_GT(error(mine, theirs), 1e-6) << what << ": nothing was rounded";
  }
}

class CudaBf16 : public testing::TestWithParam<std::tuple<Model, bool>> {};

TEST_P(CudaBf16, GivesTheCpusNumbersInBf16) {
  const auto& [m, warpgroups] = GetParam();
  const Floats parameters = starting_parameters(m), images = some_images(m);
  Model one_step = m;
  one_step.steps = 1;
  const Results cpu = m.on_cpu(m, parameters, images, some_labels(m).data()),
                cpu_once = m.on_cpu(one_step, parameters, images, some_labels(m).data());
  for (const bool truncates : {false, true}) {
    const int products_at_once = truncates ? Options{}.products_at_once : 0;
    const Results gpu = in_every_order(m, parameters, images, warpgroups, products_at_once),
                  gpu_once = in_every_order(one_step, parameters, images, warpgroups, products_at_once);
    // Both round at the same places. Where a sum in another order differs by its last bits, one number in some ten
    // thousand is rounded to the other side, by 2^-8 of itself: 4e-5 of them all, and more from pass to pass. What is
    // rounded on one side only makes 1e-3 and more. From the second step on sums that are truncated, as tensor cores
    // truncate, differ by more: where a gradient is nothing but rounding, as of the keys' bias, Adam makes a whole step
    // of it, in a direction that these last bits decide (8.7e-3 of the third step's gradients, 4.6e-4 of parameters).
    const double one_pass = 2e-4, three_steps = truncates ? 2e-2 : 5e-4;
    struct {
      const char* what;
      const Floats &mine, &theirs;
      double most;
    } const all[] = {{"outputs", gpu.forward, cpu.forward, one_pass},
                     {"outputs of evaluate", gpu.evaluated, cpu.evaluated, one_pass},
                     {"loss", gpu.evaluated_loss, cpu.evaluated_loss, one_pass},
                     {"gradients of the images", gpu.image_gradients, cpu.image_gradients, one_pass},
                     {"attention maps", gpu.maps, cpu.maps, one_pass},
                     {"magnitudes", gpu.magnitudes, cpu.magnitudes, one_pass},
                     {"gradients of the first step", gpu_once.gradients, cpu_once.gradients, one_pass},
                     {"outputs of the third step", gpu.outputs, cpu.outputs, three_steps},
                     {"loss of the third step", gpu.loss, cpu.loss, three_steps},
                     {"gradients of the third step", gpu.gradients, cpu.gradients, three_steps},
                     {"moments after three steps", gpu.optimizer, cpu.optimizer, three_steps},
                     {"parameters after three steps", gpu.parameters, cpu.parameters, three_steps}};
    for (const auto& [what, mine, theirs, most] : all) {
      ASSERT_EQ(mine.size(), theirs.size());
      if (&theirs == &cpu.maps && m.map_floats == 0) continue;  // the model has none
      EXPECT_LT(error(mine, theirs), most) << what << (truncates ? ", truncated" : ", rounded to nearest");
    }
  }
}

/// The traced declaration of that name, and how its kernels are made.
const CudaModel& declared(const std::string& name) {
  static const std::vector<CudaModel> all = toy_cuda_models();
  const auto at = std::find_if(all.begin(), all.end(), [&](const CudaModel& m) { return m.traced.name == name; });
  if (at == all.end()) throw std::runtime_error("there is no toy model " + name);
  return *at;
}

/// What an interpreter gives that rounds as the plan of the model's kernels says, in a pass and in the first step.
struct Interpreted {
  std::vector<double> outputs, loss, image_gradients;
  Arrays gradients;

  Interpreted(const Model& m, const Floats& parameters, const Floats& images) {
    const CudaModel& model = declared(m.name);
    const std::vector<std::int32_t> labels = some_labels(m);
    Arrays given;
    for (const tessera_parameter& row : m.table) {
      Array& a = given[row.name];
      a.shape.assign(row.shape, row.shape + row.rank);
      std::int64_t count = 1;
      for (const std::int64_t extent : a.shape) count *= extent;
      a.numbers.assign(parameters.begin() + row.offset, parameters.begin() + row.offset + count);
    }
    for (const tessera::graph::Node& n : model.traced.nodes)
      if (n.op == tessera::graph::Op::input)
        given[n.name] = {extents(n.shape, batch), n.name == "labels"
                                                      ? std::vector<double>(labels.begin(), labels.end())
                                                      : std::vector<double>(images.begin(), images.end())};
    const auto planned = [&](tessera::codegen::ProgramKind kind) {
      return interpret_planned(model.traced, kind, batch, given, model.passes);
    };
    outputs = planned(tessera::codegen::ProgramKind::forward).at("outputs").numbers;
    const Arrays pixels = planned(tessera::codegen::ProgramKind::input_gradient);
    loss = pixels.at("loss").numbers;
    image_gradients = pixels.at("images").numbers;
    gradients = planned(tessera::codegen::ProgramKind::loss_and_gradients);
  }
  /// All together, and the same of what a back end gave: a convolution's bias before a norm has a gradient of nothing
  /// but rounding.
  std::vector<double> all_gradients(const Model& m) const {
    std::vector<double> all;
    for (const tessera_parameter& row : m.table)
      if (const auto at = gradients.find(row.name); at != gradients.end())
        all.insert(all.end(), at->second.numbers.begin(), at->second.numbers.end());
    return all;
  }
  Floats same(const Model& m, const Floats& found) const {
    Floats all;
    for (const tessera_parameter& row : m.table)
      if (const auto at = gradients.find(row.name); at != gradients.end())
        all.insert(all.end(), found.begin() + row.offset, found.begin() + row.offset + std::ssize(at->second.numbers));
    return all;
  }
};

class CudaPlannedOfBf16 : public testing::TestWithParam<std::tuple<Model, bool>> {};

TEST_P(CudaPlannedOfBf16, GivesTheNumbersOfAnInterpreterThatRoundsAtTheSamePlaces) {
  const auto& [m, warpgroups] = GetParam();
  const Floats parameters = starting_parameters(m), images = some_images(m);
  const Interpreted wanted(m, parameters, images);
  const Results gpu = in_every_order(m, parameters, images, warpgroups),
                cpu = m.on_cpu(m, parameters, images, some_labels(m).data());
  // Where a sum in another order falls to the other side of a tie, one number in some ten thousand differs by 2^-8. The
  // gradients of LPIPS are differences of features of unit length, which are equal in its fourth stage but for the last
  // bits, and there the interpreter has more of them.
  const double of_values = 1e-5, of_gradients = m.name.starts_with("toy_lpips") ? 1e-2 : 2e-4;
  const auto expect_rounded = [](const Floats& mine, const std::vector<double>& theirs, const Floats& unrounded,
                                 double most, const char* what) {
    ASSERT_FALSE(theirs.empty()) << what;
    ASSERT_EQ(mine.size(), theirs.size()) << what;
    const double off = error(mine, Floats(theirs.begin(), theirs.end())), of_bf16 = error(mine, unrounded);
    EXPECT_LT(off, most) << what;
    EXPECT_LT(off, of_bf16 / 4) << what << ": not rounded is " << of_bf16;
  };
  expect_rounded(gpu.forward, wanted.outputs, cpu.forward, of_values, "outputs");
  expect_rounded(gpu.evaluated_loss, wanted.loss, cpu.evaluated_loss, of_values, "loss");
  expect_rounded(gpu.image_gradients, wanted.image_gradients, cpu.image_gradients, of_gradients,
                 "gradients of the images");
  expect_rounded(wanted.same(m, gpu.gradients), wanted.all_gradients(m), wanted.same(m, cpu.gradients), of_gradients,
                 "gradients");
}

// How far off rounding makes a model's numbers is what the interpreter measures. Backward through a stack of blocks its
// gradients are other ones than the kernels' (6e-3 between them, where either is 1.3e-2 off), so that the distance
// alone is compared.
class CudaRoundingOfBf16 : public testing::TestWithParam<std::tuple<Model, bool>> {};

TEST_P(CudaRoundingOfBf16, IsNoFurtherOffThanAnInterpreterThatRounds) {
  const auto& [of_three_steps, warpgroups] = GetParam();
  Model m = of_three_steps;
  m.steps = 1;
  const Floats parameters = starting_parameters(m), images = some_images(m);
  const Interpreted rounded(m, parameters, images);
  const Results gpu = in_every_order(m, parameters, images, warpgroups),
                cpu = m.on_cpu(m, parameters, images, some_labels(m).data());
  const auto expect_no_further = [](const Floats& mine, const std::vector<double>& theirs, const Floats& unrounded,
                                    const char* what) {
    ASSERT_FALSE(theirs.empty()) << what;
    ASSERT_EQ(mine.size(), theirs.size()) << what;
    const double off = error(mine, unrounded), rounding = error(Floats(theirs.begin(), theirs.end()), unrounded);
    EXPECT_LT(off, 1.25 * rounding) << what;
    EXPECT_GT(off, rounding / 2) << what << ": less is rounded than the plan says";
  };
  expect_no_further(gpu.forward, rounded.outputs, cpu.forward, "outputs");
  expect_no_further(gpu.image_gradients, rounded.image_gradients, cpu.image_gradients, "gradients of the images");
  expect_no_further(rounded.same(m, gpu.gradients), rounded.all_gradients(m), rounded.same(m, cpu.gradients),
                    "gradients");
}

// Attention's probabilities by the one, what backward reads of the norms' results by the other.
TEST(CudaAttention, ComputedAgainGivesTheBitsOfTheStored) {
  const Model stored = TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16),
              again = TESSERA_TOY_MODEL(toy_wide_again_bf16, TOY_WIDE_AGAIN_BF16);
  const Floats parameters = starting_parameters(stored), images = some_images(stored);
  const Results one = stored.on_gpu(stored, parameters, images, some_labels(stored).data()),
                other = again.on_gpu(again, parameters, images, some_labels(again).data());
  EXPECT_EQ(one.image_gradients, other.image_gradients);
  EXPECT_EQ(one.gradients, other.gradients);
  EXPECT_EQ(one.parameters, other.parameters);
  EXPECT_GT(TOY_WIDE_BF16_CUDA_TRAIN_SCRATCH_BYTES(batch), TOY_WIDE_AGAIN_BF16_CUDA_TRAIN_SCRATCH_BYTES(batch));
}

TEST(CudaApi, NullPointersAndBatchesThatNoGridHasRoomForAreRefused) {
  float x = 0;
  EXPECT_EQ(toy_mnist_cuda_forward(nullptr, nullptr, &x, 1, &x, &x, nullptr), TOY_MNIST_ERROR_NULL);
  EXPECT_EQ(toy_mnist_cuda_forward(&x, nullptr, &x, 0, &x, &x, nullptr), TOY_MNIST_ERROR_BATCH);
  EXPECT_EQ(toy_mnist_cuda_forward(&x, nullptr, &x, toy_mnist_cuda_largest_batch() + 1, &x, &x, nullptr),
            TOY_MNIST_ERROR_BATCH);
  EXPECT_EQ(toy_mnist_cuda_inspect(&x, nullptr, &x, toy_mnist_cuda_largest_inspected_batch() + 1, &x, &x, &x, nullptr),
            TOY_MNIST_ERROR_BATCH);
  EXPECT_EQ(toy_mnist_cuda_pack(&x, nullptr, nullptr), TOY_MNIST_OK);
  EXPECT_EQ(toy_mnist_bf16_cuda_pack(&x, nullptr, nullptr), TOY_MNIST_BF16_ERROR_NULL);
  EXPECT_EQ(toy_mnist_bf16_cuda_forward(&x, nullptr, &x, 1, &x, &x, nullptr), TOY_MNIST_BF16_ERROR_NULL);
}

INSTANTIATE_TEST_SUITE_P(Toy, CudaModels, testing::ValuesIn(Models::in_fp32()),
                         [](const testing::TestParamInfo<Model>& info) { return info.param.name; });
std::string named(const std::tuple<Model, bool>& run) {
  return std::get<0>(run).name + (std::get<1>(run) ? "_sm_90a" : "_sm_80");
}
INSTANTIATE_TEST_SUITE_P(Toy, CudaModelsOfBf16, testing::Combine(testing::ValuesIn(Models::in_bf16()), testing::Bool()),
                         [](const auto& info) { return named(info.param); });
INSTANTIATE_TEST_SUITE_P(Toy, CudaPlannedOfBf16,
                         testing::Combine(testing::ValuesIn(Models::vqgan_in_bf16()), testing::Bool()),
                         [](const auto& info) { return named(info.param); });
INSTANTIATE_TEST_SUITE_P(Toy, CudaRoundingOfBf16,
                         testing::Combine(testing::ValuesIn([] {
                                            auto all = Models::groups_in_bf16();
                                            for (auto& m : Models::depths_in_bf16()) all.push_back(m);
                                            return all;
                                          }()),
                                          testing::Bool()),
                         [](const auto& info) { return named(info.param); });
INSTANTIATE_TEST_SUITE_P(Toy, CudaBf16, testing::Combine(testing::ValuesIn(Models::rounded_on_both()), testing::Bool()),
                         [](const auto& info) { return named(info.param); });

}  // namespace
