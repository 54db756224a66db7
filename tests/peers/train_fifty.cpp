// train_fifty FILE: trains three emitted models for fifty steps on random batches, and writes what they started from,
// the batches, the losses and what became of the parameters: "<model>.start.<key>", ".images", ".labels", ".losses",
// ".end.<key>". compare.py does the same with PyTorch.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/philox.hpp"
#include "runtime/safetensors.hpp"
#include "tests/models/emitted_model.hpp"
#include "vit_cifar_small.h"
#include "vit_mnist.h"
#include "vit_tiny_small.h"

namespace tessera::test {
namespace {

using runtime::Safetensors;
using runtime::Shape;
using runtime::Tensor;

constexpr std::int64_t steps = 50, batch = 16;

/// Aligned memory that starts as zeros.
class Memory {
 public:
  explicit Memory(std::int64_t bytes)
      : bytes_(static_cast<std::byte*>(::operator new(static_cast<std::size_t>(bytes), std::align_val_t(64)))) {
    std::fill_n(bytes_.get(), bytes, std::byte{0});
  }
  float* floats() const { return reinterpret_cast<float*>(bytes_.get()); }
  void* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

void put(Safetensors& file, const std::string& prefix, const EmittedModel& model, const float* arena) {
  for (const tessera_parameter& row : model.parameters) {
    const Shape shape(row.shape, row.shape + row.rank);
    file.tensors[prefix + row.name] =
        Tensor::of(shape, std::span(arena + row.offset, static_cast<std::size_t>(runtime::elements(shape))));
  }
}

void train(Safetensors& file, const std::string& name, const EmittedModel& model, int (*init)(float*, std::uint64_t),
           const Shape& image) {
  const std::int64_t pixels = runtime::elements(image), classes = model.output_floats;
  std::vector<float> images(static_cast<std::size_t>(steps * batch * pixels));
  std::vector<std::int64_t> labels(static_cast<std::size_t>(steps * batch));
  runtime::Random random(7, 0, static_cast<std::uint64_t>(pixels));
  for (float& x : images) x = static_cast<float>(random.bell());
  for (std::int64_t& y : labels) y = random.below(static_cast<std::uint32_t>(classes));

  const Memory parameters(4 * model.parameter_floats), packed(4 * model.packed_floats),
      gradients(4 * model.parameter_floats);
  const Memory optimizer(4 * model.optimizer_floats), scratch(model.train_bytes(batch)), outputs(4 * batch * classes);
  if (init(parameters.floats(), 1)) throw std::runtime_error(name + " cannot be started");
  if (model.pack(parameters.floats(), packed.floats())) throw std::runtime_error(name + " cannot be packed");
  put(file, name + ".start.", model, parameters.floats());
  std::vector<float> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::vector<std::int32_t> narrow(labels.begin() + step * batch, labels.begin() + (step + 1) * batch);
    float loss = 0;
    const int code = model.train_step(parameters.floats(), packed.floats(), gradients.floats(), optimizer.floats(),
                                      images.data() + step * batch * pixels, narrow.data(), batch, batch, 1, step + 1,
                                      model.learning_rate, outputs.floats(), &loss, scratch.data());
    if (code) throw std::runtime_error(name + " cannot train");
    losses.push_back(loss);
  }
  put(file, name + ".end.", model, parameters.floats());
  Shape all{steps, batch};
  file.tensors[name + ".labels"] = Tensor::of(all, std::span<const std::int64_t>(labels));
  all.insert(all.end(), image.begin(), image.end());
  file.tensors[name + ".images"] = Tensor::of(all, std::span<const float>(images));
  file.tensors[name + ".losses"] = Tensor::of({steps}, std::span<const float>(losses));
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: train_fifty FILE\n";
    return 2;
  }
  try {
    tessera::runtime::Safetensors file;
    tessera::test::train(file, "vit_mnist", TESSERA_EMITTED_MODEL(vit_mnist, VIT_MNIST, "mnist_vit", 0.005f),
                         vit_mnist_init, {1, 28, 28});
    tessera::test::train(file, "vit_tiny_small",
                         TESSERA_EMITTED_MODEL(vit_tiny_small, VIT_TINY_SMALL, "vit_tiny_small", 0.001f),
                         vit_tiny_small_init, {3, 32, 32});
    tessera::test::train(file, "vit_cifar_small",
                         TESSERA_EMITTED_MODEL(vit_cifar_small, VIT_CIFAR_SMALL, "cifar_vit_small", 0.001f),
                         vit_cifar_small_init, {3, 16, 16});
    tessera::runtime::write_safetensors(argv[1], file);
  } catch (const std::exception& error) {
    std::cerr << "train_fifty: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
