// The emitted CUDA files, run as they are on the CPU, against the scalar CPU back end: outputs, loss, every gradient,
// attention maps and three steps of training, in every order of blocks and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "scalar_graph_cuda.h"
#include "self_attention_again_bf16_cuda.h"
#include "sentence_attention_bf16_cuda.h"
#include "sentence_attention_cuda.h"
#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "tests/cuda/model_run.hpp"
#include "toy_cait_bf16_cuda.h"
#include "toy_cait_cuda.h"
#include "toy_cifar_bf16_cuda.h"
#include "toy_cifar_cuda.h"
#include "toy_differential_bf16_cuda.h"
#include "toy_differential_cuda.h"
#include "toy_discriminator_cuda.h"
#include "toy_groups_cuda.h"
#include "toy_lpips_cuda.h"
#include "toy_mixed_rope_bf16_cuda.h"
#include "toy_mixed_rope_cuda.h"
#include "toy_mnist_bf16_cuda.h"
#include "toy_mnist_cuda.h"
#include "toy_notebook_bf16_cuda.h"
#include "toy_notebook_cuda.h"
#include "toy_parallel_bf16_cuda.h"
#include "toy_parallel_cuda.h"
#include "toy_relative_bf16_cuda.h"
#include "toy_relative_cuda.h"
#include "toy_relative_mlp_cuda.h"
#include "toy_rope_cuda.h"
#include "toy_self_attention_bf16_cuda.h"
#include "toy_self_attention_cuda.h"
#include "toy_vit_bf16_cuda.h"
#include "toy_vit_cuda.h"
#include "toy_vqgan_bf16_cuda.h"
#include "toy_vqgan_cuda.h"
#include "toy_wide_again_bf16_cuda.h"
#include "toy_wide_bf16_cuda.h"
#include "wide_self_attention_bf16_cuda.h"

namespace {

using tessera::cuda_host::DeviceArray;
using tessera::cuda_host::Options;
using tessera::cuda_host::Schedule;
using namespace tessera::test;

/// What is divided by starts above zero: running variances, and a scale of images.
template <std::size_t parameters>
void make_positive(const tessera_parameter (&table)[parameters], float* values) {
  for (const tessera_parameter& row : table) {
    if (!std::string_view(row.name).ends_with("running_var") && !std::string_view(row.name).ends_with("scale"))
      continue;
    std::int64_t count = 1;
    for (int d = 0; d < row.rank; ++d) count *= row.shape[d];
    for (float* x = values + row.offset; x < values + row.offset + count; ++x) *x = 0.5f + std::fabs(*x);
  }
}
Model discriminator(Model m) {
  m.start = [](float* p) {
    toy_discriminator_init(p, 7);
    make_positive(toy_discriminator_parameters, p);
  };
  return m;
}
Model lpips(Model m) {
  m.start = [](float* p) {
    toy_lpips_init(p, 7);
    make_positive(toy_lpips_parameters, p);
  };
  return m;
}

const Model models[] = {TESSERA_TOY_MODEL(toy_mnist, TOY_MNIST),
                        TESSERA_TOY_MODEL(toy_cifar, TOY_CIFAR),
                        TESSERA_TOY_MODEL(toy_vit, TOY_VIT),
                        TESSERA_TOY_MODEL(toy_notebook, TOY_NOTEBOOK),
                        TESSERA_TOY_MODEL(toy_self_attention, TOY_SELF_ATTENTION),
                        TESSERA_TOY_MODEL(sentence_attention, SENTENCE_ATTENTION),
                        TESSERA_TOY_MODEL(scalar_graph, SCALAR_GRAPH),
                        TESSERA_TOY_MODEL(toy_rope, TOY_ROPE),
                        TESSERA_TOY_MODEL(toy_mixed_rope, TOY_MIXED_ROPE),
                        TESSERA_TOY_MODEL(toy_groups, TOY_GROUPS),
                        TESSERA_TOY_MODEL(toy_relative, TOY_RELATIVE),
                        TESSERA_TOY_MODEL(toy_relative_mlp, TOY_RELATIVE_MLP),
                        TESSERA_TOY_MODEL(toy_cait, TOY_CAIT),
                        TESSERA_TOY_MODEL(toy_differential, TOY_DIFFERENTIAL),
                        TESSERA_TOY_MODEL(toy_parallel, TOY_PARALLEL),
                        TESSERA_TOY_MODEL(toy_vqgan, TOY_VQGAN),
                        discriminator(TESSERA_TOY_MODEL(toy_discriminator, TOY_DISCRIMINATOR)),
                        lpips(TESSERA_TOY_MODEL(toy_lpips, TOY_LPIPS))};
const Model models_of_bf16[] = {TESSERA_TOY_MODEL_BF16(toy_mnist, TOY_MNIST),
                                TESSERA_TOY_MODEL_BF16(toy_cifar, TOY_CIFAR),
                                TESSERA_TOY_MODEL_BF16(toy_vit, TOY_VIT),
                                TESSERA_TOY_MODEL_BF16(toy_notebook, TOY_NOTEBOOK),
                                TESSERA_TOY_MODEL_BF16(toy_self_attention, TOY_SELF_ATTENTION),
                                TESSERA_TOY_MODEL_BF16(sentence_attention, SENTENCE_ATTENTION),
                                TESSERA_TOY_MODEL_BF16(toy_mixed_rope, TOY_MIXED_ROPE),
                                TESSERA_TOY_MODEL_BF16(toy_relative, TOY_RELATIVE),
                                TESSERA_TOY_MODEL_BF16(toy_cait, TOY_CAIT),
                                TESSERA_TOY_MODEL_BF16(toy_differential, TOY_DIFFERENTIAL),
                                TESSERA_TOY_MODEL_BF16(toy_parallel, TOY_PARALLEL),
                                TESSERA_TOY_MODEL_BF16(toy_vqgan, TOY_VQGAN)};
const Model rounded_on_both[] = {TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16),
                                 TESSERA_TOY_MODEL(toy_wide_again_bf16, TOY_WIDE_AGAIN_BF16),
                                 TESSERA_TOY_MODEL(self_attention_again_bf16, SELF_ATTENTION_AGAIN_BF16),
                                 TESSERA_TOY_MODEL(wide_self_attention_bf16, WIDE_SELF_ATTENTION_BF16)};

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
  struct {
    const char* what;
    const Floats &mine, &theirs;
    double most;
  } const all[] = {{"outputs", gpu.forward, cpu.forward, 1e-2},
                   {"outputs of evaluate", gpu.evaluated, cpu.evaluated, 1e-2},
                   {"loss", gpu.evaluated_loss, cpu.evaluated_loss, 1e-2},
                   {"gradients of the images", gpu.image_gradients, cpu.image_gradients, 1e-2},
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

INSTANTIATE_TEST_SUITE_P(Toy, CudaModels, testing::ValuesIn(models),
                         [](const testing::TestParamInfo<Model>& info) { return info.param.name; });
std::string named(const std::tuple<Model, bool>& run) {
  return std::get<0>(run).name + (std::get<1>(run) ? "_sm_90a" : "_sm_80");
}
INSTANTIATE_TEST_SUITE_P(Toy, CudaModelsOfBf16, testing::Combine(testing::ValuesIn(models_of_bf16), testing::Bool()),
                         [](const auto& info) { return named(info.param); });
INSTANTIATE_TEST_SUITE_P(Toy, CudaBf16, testing::Combine(testing::ValuesIn(rounded_on_both), testing::Bool()),
                         [](const auto& info) { return named(info.param); });

}  // namespace
