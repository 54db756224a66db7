// Correctness on a GPU, against the scalar CPU back end: a line for each model with the largest differences, after
// one call of each program and three steps of training. Exit status 1 where one is too large, 2 without a GPU.
// scripts/gpu-check builds and runs it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "scalar_graph_cuda.h"
#include "self_attention_2d_cuda.h"
#include "self_attention_again_bf16_cuda.h"
#include "sentence_attention_bf16_cuda.h"
#include "sentence_attention_cuda.h"
#include "tests/cuda/gpu/device_array.hpp"
#include "tests/cuda/model_run.hpp"
#include "toy_cifar_cuda.h"
#include "toy_mnist_bf16_cuda.h"
#include "toy_mnist_cuda.h"
#include "toy_notebook_cuda.h"
#include "toy_self_attention_bf16_cuda.h"
#include "toy_self_attention_cuda.h"
#include "toy_vit_bf16_cuda.h"
#include "toy_vit_cuda.h"
#include "toy_wide_again_bf16_cuda.h"
#include "toy_wide_bf16_cuda.h"
#include "vit_cifar_cuda.h"
#include "wide_self_attention_bf16_cuda.h"

namespace {

using tessera::cuda_gpu::DeviceArray;
using namespace tessera::test;

/// Which stay as near to the CPU's single precision as bf16 does.
const Model models_of_bf16[] = {TESSERA_TOY_MODEL_BF16(toy_mnist, TOY_MNIST), TESSERA_TOY_MODEL_BF16(toy_vit, TOY_VIT),
                                TESSERA_TOY_MODEL_BF16(toy_self_attention, TOY_SELF_ATTENTION),
                                TESSERA_TOY_MODEL_BF16(sentence_attention, SENTENCE_ATTENTION)};
/// Both round at the same places.
const Model rounded_on_both[] = {TESSERA_TOY_MODEL(toy_wide_bf16, TOY_WIDE_BF16),
                                 TESSERA_TOY_MODEL(toy_wide_again_bf16, TOY_WIDE_AGAIN_BF16),
                                 TESSERA_TOY_MODEL(self_attention_again_bf16, SELF_ATTENTION_AGAIN_BF16),
                                 TESSERA_TOY_MODEL(wide_self_attention_bf16, WIDE_SELF_ATTENTION_BF16)};
const Model models[] = {TESSERA_TOY_MODEL(toy_mnist, TOY_MNIST),
                        TESSERA_TOY_MODEL(toy_cifar, TOY_CIFAR),
                        TESSERA_TOY_MODEL(toy_vit, TOY_VIT),
                        TESSERA_TOY_MODEL(toy_notebook, TOY_NOTEBOOK),
                        TESSERA_TOY_MODEL(vit_cifar, VIT_CIFAR),
                        TESSERA_TOY_MODEL(toy_self_attention, TOY_SELF_ATTENTION),
                        TESSERA_TOY_MODEL(self_attention_2d, SELF_ATTENTION_2D),
                        TESSERA_TOY_MODEL(sentence_attention, SENTENCE_ATTENTION),
                        TESSERA_TOY_MODEL(scalar_graph, SCALAR_GRAPH)};

/// |mine - theirs| / (1 + |theirs|), the largest; not a number where mine is not.
double difference(const Floats& mine, const Floats& theirs) {
  double most = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double d = std::fabs(static_cast<double>(mine[i]) - theirs[i]) / (1 + std::fabs(theirs[i]));
    if (!(d <= most)) most = d;
    if (std::isnan(most)) break;
  }
  return most;
}

bool check(const Model& m, double one_pass, double three_steps) {
  const Floats parameters = starting_parameters(m), images = some_images(m);
  const Results cpu = m.on_cpu(m, parameters, images, some_labels(m).data());
  const Results gpu = m.on_gpu(m, parameters, images, some_labels(m).data()),
                again = m.on_gpu(m, parameters, images, some_labels(m).data());
  tessera::cuda_gpu::check(cudaDeviceSynchronize());
  const double outputs = difference(gpu.forward, cpu.forward), maps = difference(gpu.maps, cpu.maps),
               pixels = difference(gpu.image_gradients, cpu.image_gradients), loss = difference(gpu.loss, cpu.loss),
               gradients = difference(gpu.gradients, cpu.gradients), moments = difference(gpu.optimizer, cpu.optimizer);
  const bool same = gpu.gradients == again.gradients && gpu.parameters == again.parameters;
  const bool near = outputs < one_pass && maps < one_pass && pixels < one_pass && loss < three_steps &&
                    gradients < three_steps && moments < three_steps;
  std::printf("%-24s %9.1e %9.1e %9.1e %9.1e %9.1e %9.1e  %s  %s\n", m.name.c_str(), outputs, maps, pixels, loss,
              gradients, moments, same ? "same bits" : "BITS DIFFER", near ? "passed" : "FAILED");
  return same && near;
}

}  // namespace

/// tensor_check.cu; prints what is wrong.
bool tensor_cores_are_right();

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("there is no GPU here: nothing was run on one\n");
    return 2;
  }
  try {
    bool good = tensor_cores_are_right();
    std::printf("%-24s %9s %9s %9s %9s %9s %9s\n", "model", "outputs", "maps", "pixels", "loss", "gradients",
                "moments");
    for (const Model& m : models) good = check(m, 1e-5, 1e-4) && good;
    for (const Model& m : models_of_bf16) good = check(m, 1e-2, 1e-1) && good;
    for (const Model& m : rounded_on_both) good = check(m, 2e-3, 2e-2) && good;
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
