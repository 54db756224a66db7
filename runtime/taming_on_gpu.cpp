#include "runtime/taming_on_gpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "runtime/error.hpp"

namespace tessera::runtime {

TamingOnGpu::TamingOnGpu(const Taming& taming, std::int64_t batch)
    : taming_(taming),
      positions_(taming.transformer.tokens.window.rows * taming.transformer.tokens.window.columns),
      batch_(batch),
      gpu_(taming.transformer.model),
      parameters_(gpu_, taming.transformer.model.parameter_floats),
      gradients_(GpuMemory::of_floats(gpu_, batch ? taming.transformer.model.parameter_floats : 0)),
      optimizer_(GpuMemory::of_floats(gpu_, batch ? taming.transformer.model.optimizer_floats() : 0)),
      read_(gpu_, size_product({4, std::max(batch, images_a_pass), positions_})),
      wanted_(gpu_, size_product({4, std::max(batch, images_a_pass), positions_})),
      given_(gpu_, sizeof(Given)),
      outputs_(GpuMemory::of_floats(
          gpu_, size_product({std::max(batch, images_a_pass), positions_, taming.transformer.tokens.codes}))),
      scratch_(gpu_, std::max(batch ? gpu_.cuda().train_scratch_bytes(batch) : 0,
                              gpu_.cuda().evaluate_scratch_bytes(images_a_pass))) {
  gpu_.check_batch(std::max(batch, images_a_pass));
}

void TamingOnGpu::load(const float* parameters, const float* optimizer) const {
  parameters_.write(parameters);
  if (optimizer) optimizer_.write(optimizer, 4 * taming_.transformer.model.optimizer_floats());
}

void TamingOnGpu::store(float* parameters, float* optimizer) const {
  parameters_.read(parameters);
  optimizer_.read(optimizer, 4 * taming_.transformer.model.optimizer_floats());
}

float TamingOnGpu::step(std::span<const std::int32_t> read, std::span<const std::int32_t> wanted, std::int64_t number,
                        std::uint64_t seed, float learning_rate) const {
  const std::int64_t batch = std::ssize(read) / positions_;
  if (batch > batch_) fail("a batch of ", batch, " images, where there is room for ", batch_);
  const Cuda& cuda = gpu_.cuda();
  Given given{{seed, number, learning_rate, 0}, 0};
  read_.write(read.data(), 4 * std::ssize(read));
  wanted_.write(wanted.data(), 4 * std::ssize(wanted));
  given_.write(&given, sizeof given);
  auto* const counted = static_cast<tessera_cuda_step*>(given_.data());
  float* const loss = given_.floats() + offsetof(Given, loss) / 4;
  gpu_.check(cuda.token_gradients(parameters_.floats(), parameters_.packed(),
                                  static_cast<const std::int32_t*>(read_.data()),
                                  static_cast<const std::int32_t*>(wanted_.data()), counted, batch, outputs_.floats(),
                                  loss, gradients_.floats(), scratch_.data(), gpu_.stream()));
  gpu_.check(cuda.check(loss, gradients_.floats(), counted, gpu_.stream()));
  gpu_.check(cuda.update(parameters_.floats(), parameters_.packed(), gradients_.floats(), optimizer_.floats(), counted,
                         scratch_.data(), gpu_.stream()));
  given_.read(&given, sizeof given);
  if (given.step.stopped != 0)
    fail("step ", number, ": ", std::isfinite(given.loss) ? "a gradient" : "the loss", " is not a number");
  return given.loss;
}

double TamingOnGpu::nats_a_token(const Tokens& tokens) const {
  double sum = 0;
  float* const loss = given_.floats() + offsetof(Given, loss) / 4;
  for (std::int64_t first = 0; first < tokens.images; first += images_a_pass) {
    const std::int64_t images = std::min(images_a_pass, tokens.images - first);
    Given given{};
    read_.write(tokens.read.data() + first * positions_, 4 * images * positions_);
    wanted_.write(tokens.wanted.data() + first * positions_, 4 * images * positions_);
    gpu_.check(gpu_.cuda().evaluate_tokens(parameters_.floats(), parameters_.packed(),
                                           static_cast<const std::int32_t*>(read_.data()),
                                           static_cast<const std::int32_t*>(wanted_.data()), images, outputs_.floats(),
                                           loss, scratch_.data(), gpu_.stream()));
    given_.read(&given, sizeof given);
    sum += static_cast<double>(given.loss) * static_cast<double>(images);
  }
  return sum / static_cast<double>(tokens.images);
}

}  // namespace tessera::runtime
