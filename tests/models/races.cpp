// Every function of the emitted vit_mnist on four threads, for ThreadSanitizer. With an argument: a race is planted.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "vit_mnist.h"

int main(int argc, char**) {
  constexpr std::int64_t size = 37;
  const auto numbers = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count)); };
  std::vector<float> parameters = numbers(VIT_MNIST_PARAMETER_FLOATS), gradients = parameters,
                     optimizer = numbers(VIT_MNIST_OPTIMIZER_FLOATS), images = numbers(size * VIT_MNIST_IMAGE_FLOATS),
                     inputs = images, outputs = numbers(size * VIT_MNIST_OUTPUT_FLOATS),
                     maps = numbers(size * VIT_MNIST_ATTENTION_FLOATS), magnitudes = numbers(size * VIT_MNIST_LAYERS),
                     scratch = numbers(VIT_MNIST_TRAIN_SCRATCH_BYTES(size) / 4);
  scratch.resize(scratch.size() + VIT_MNIST_INPUT_GRADIENT_SCRATCH_BYTES(size) / 4 +
                 VIT_MNIST_INSPECT_SCRATCH_BYTES(size) / 4);
  std::vector<std::int32_t> labels(size, 3);
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i % 251) / 251;
  float* const p = parameters.data();
  float loss = 0;
  int code = vit_mnist_init(p, 1);
  for (int step = 1; step <= 2; ++step)
    code |= vit_mnist_train_step(p, nullptr, gradients.data(), optimizer.data(), images.data(), labels.data(), size,
                                 step == 1 ? size : (size + 15) / 16, 1, step, 0.001f, outputs.data(), &loss,
                                 scratch.data());
  code |= vit_mnist_forward(p, nullptr, images.data(), size, outputs.data(), scratch.data());
  code |= vit_mnist_evaluate(p, nullptr, images.data(), labels.data(), size, outputs.data(), &loss, scratch.data());
  code |= vit_mnist_input_gradient(p, nullptr, images.data(), labels.data(), size, outputs.data(), &loss, inputs.data(),
                                   scratch.data());
  code |= vit_mnist_inspect(p, nullptr, images.data(), size, maps.data(), magnitudes.data(), scratch.data());
  if (argc > 1) {
    volatile float sum = 0;
#pragma omp parallel for
    for (int i = 0; i < 1000; ++i) sum = sum + 1;
    loss += sum;
  }
  std::printf("%s: loss %g\n", vit_mnist_isa(), static_cast<double>(loss));
  return code || !std::isfinite(loss);
}
