// Correctness on a GPU, against the scalar CPU back end: a line for each model with the largest differences, after
// one call of each program and three steps of training. Exit status 1 where one is too large, 2 without a GPU, 3 where
// it is called in a wrong way. scripts/gpu-check builds and runs it.
//
// Usage: gpu_check [--unfilled] [--tolerances FACTOR] [NAME ...], or gpu_check --list
//
//   NAME          "tensor_cores" or a model: these alone; "few": what has every kind of kernel, for CUDA's sanitizer
//   --list        writes the names
//   --unfilled    scratch memory does not start as not-a-number: nobody has written it, for initcheck
//   --tolerances  so many times the differences that are allowed otherwise
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/cuda/gpu/device_array.hpp"
#include "tests/cuda/toy_runs.hpp"
#ifdef TESSERA_DEVICE_HEADER  // the CPU stands for the GPU, and would take long for published sizes
#include "tests/cuda/host/run.hpp"
#else
#include "self_attention_2d_cuda.h"
#include "vit_cifar_cuda.h"
#endif

namespace {

using tessera::cuda_gpu::DeviceArray;
using namespace tessera::test;

using Models = ToyModels<DeviceArray>;

/// In single precision: the toy models, and on a GPU two of published sizes.
std::vector<Model> in_fp32() {
  std::vector<Model> all = Models::in_fp32();
#ifndef TESSERA_DEVICE_HEADER
  all.push_back(TESSERA_TOY_MODEL(vit_cifar, VIT_CIFAR));
  all.push_back(TESSERA_TOY_MODEL(self_attention_2d, SELF_ATTENTION_2D));
#endif
  return all;
}
const char* const few[] = {"tensor_cores", "toy_cifar", "toy_vit_bf16", "toy_wide_bf16", "toy_wide_again_bf16"};

double tolerances = 1;

/// The largest |mine - theirs| / (1 + |theirs|) or, if that is more, |mine - theirs| / |theirs| of root mean squares,
/// by which small numbers count, too; not a number where mine is not.
double difference(const Floats& mine, const Floats& theirs) {
  double most = 0, differences = 0, all = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const double d = std::fabs(static_cast<double>(mine[i]) - theirs[i]);
    most = std::max(most, d / (1 + std::fabs(theirs[i])));
    differences += d * d;
    all += static_cast<double>(theirs[i]) * theirs[i];
  }
  const double relative = std::sqrt(differences / all);
  return all == 0 && differences == 0 ? 0 : relative <= most ? most : relative;
}

bool check(const Model& m, double one_pass, double three_steps) {
  one_pass *= tolerances;
  three_steps *= tolerances;
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
  std::printf("%-28s %9.1e %9.1e %9.1e %9.1e %9.1e %9.1e  %s  %s\n", m.name.c_str(), outputs, maps, pixels, loss,
              gradients, moments, same ? "same bits" : "BITS DIFFER", near ? "passed" : "FAILED");
  return same && near;
}

}  // namespace

/// tensor_check.cu; prints what is wrong.
bool tensor_cores_are_right();

int main(int argc, char** argv) {
#ifdef TESSERA_DEVICE_HEADER
  tessera::cuda_host::use({tessera::cuda_host::Schedule::fixed, 1, true, true});
#endif
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // whoever stops this sees what was done
  std::set<std::string> wanted;
  std::vector<std::string> known{"tensor_cores"};
  struct Group {
    std::vector<Model> models;
    double one_pass, three_steps;  ///< differences that are allowed
  };
  const Group groups[] = {{in_fp32(), 1e-5, 1e-4},
                          {Models::in_bf16(), 2e-2, 1e-1},
                          {Models::groups_in_bf16(), 2e-2, 1e-1},
                          // Of what is nothing but rounding, as the bias of keys has, the largest is 2e-1.
                          {Models::vqgan_in_bf16(), 2e-1, 4e-1},
                          {Models::depths_in_bf16(), 1e-1, 2e-1},
                          {Models::rounded_on_both(), 2e-3, 2e-2}};
  for (const Group& group : groups)
    for (const Model& m : group.models) known.push_back(m.name);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--unfilled") {
      tessera::cuda_gpu::fill_scratch = false;
    } else if (argument == "--tolerances" && i + 1 < argc) {
      tolerances = std::atof(argv[++i]);
    } else if (argument == "--list") {
      for (const std::string& name : known) std::printf("%s\n", name.c_str());
      return 0;
    } else if (argument == "few") {
      wanted.insert(std::begin(few), std::end(few));
    } else if (std::find(known.begin(), known.end(), argument) != known.end()) {
      wanted.insert(argument);
    } else {
      std::printf("gpu_check knows of no %s\n", argument.c_str());
      return 3;
    }
  }
  const auto asked = [&](const std::string& name) { return wanted.empty() || wanted.contains(name); };

  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("there is no GPU here: nothing was run on one\n");
    return 2;
  }
  try {
    bool good = !asked("tensor_cores") || tensor_cores_are_right();
    if (wanted.size() != 1)
      std::printf("%-28s %9s %9s %9s %9s %9s %9s\n", "model", "outputs", "maps", "pixels", "loss", "gradients",
                  "moments");
    for (const Group& group : groups)
      for (const Model& m : group.models)
        if (asked(m.name)) good = check(m, group.one_pass, group.three_steps) && good;
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
