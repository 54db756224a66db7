// The emitted CUDA files, run as they are on the CPU, in the eyes of ThreadSanitizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "scalar_graph_cuda.h"
#include "sentence_attention_cuda.h"
#include "tests/cuda/host/device_array.hpp"
#include "tests/cuda/host/run.hpp"
#include "tests/cuda/model_run.hpp"
#include "toy_cifar_cuda.h"
#include "toy_mnist_cuda.h"
#include "toy_race_cuda.h"
#include "toy_self_attention_cuda.h"
#include "toy_vit.h"
#include "toy_vit_bf16_cuda.h"
#include "toy_wide_again_bf16_cuda.h"
#include "toy_wide_bf16_cuda.h"
#include "wide_self_attention_bf16_cuda.h"

namespace {

using tessera::cuda_host::DeviceArray;
using tessera::cuda_host::Schedule;
using namespace tessera::test;

class CudaRacesIn : public testing::TestWithParam<std::tuple<Model, bool>> {};

TEST_P(CudaRacesIn, NoTwoThreadsOfAnEmittedKernelRace) {
  auto [m, warpgroups] = GetParam();
  m.steps = 1;
  tessera::cuda_host::use({Schedule::random, 5, true, warpgroups});
  const Results r = m.on_gpu(m, starting_parameters(m), some_images(m), some_labels(m).data());
  tessera::cuda_host::use({});
  EXPECT_TRUE(std::all_of(r.parameters.begin(), r.parameters.end(), [](float x) { return std::isfinite(x); }));
}

TEST(CudaRaces, ABarrierThatIsMissingInAnEmittedFileIsFound) {
  const Model m = TESSERA_TOY_MODEL_BESIDE(toy_mnist, TOY_MNIST, toy_race, TOY_RACE);
  try {
    m.on_gpu(m, starting_parameters(m), some_images(m), some_labels(m).data());
    ADD_FAILURE() << "nothing was found";
  } catch (const tessera::cuda_host::Fault& fault) {
    EXPECT_NE(std::string(fault.what()).find(" races with a"), std::string::npos) << fault.what();
  }
}

const std::tuple<Model, bool> models[] = {
    {TESSERA_TOY_MODEL(toy_mnist, TOY_MNIST), false},
    {TESSERA_TOY_MODEL(toy_cifar, TOY_CIFAR), false},
    {TESSERA_TOY_MODEL_BF16(toy_vit, TOY_VIT), false},
    {TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16), false},
    {TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16), true},
    {TESSERA_TOY_MODEL(toy_self_attention, TOY_SELF_ATTENTION), false},
    {TESSERA_TOY_MODEL(toy_wide_again_bf16, TOY_WIDE_AGAIN_BF16), false},
    {TESSERA_TOY_MODEL(sentence_attention, SENTENCE_ATTENTION), false},
    {TESSERA_TOY_MODEL(scalar_graph, SCALAR_GRAPH), false},
    {TESSERA_TOY_MODEL(wide_self_attention_bf16, WIDE_SELF_ATTENTION_BF16), false},
    {TESSERA_TOY_MODEL(wide_self_attention_bf16, WIDE_SELF_ATTENTION_BF16), true}};
INSTANTIATE_TEST_SUITE_P(Toy, CudaRacesIn, testing::ValuesIn(models), [](const auto& info) {
  return std::get<0>(info.param).name + (std::get<1>(info.param) ? "_sm_90a" : "_sm_80");
});

}  // namespace
