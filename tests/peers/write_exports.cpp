// write_exports FOLDER: exports emitted models as a person would, NAME.F32.safetensors and the like, and writes what
// they answer to random images, NAME.answers.safetensors. strict.py loads all of it with PyTorch.
#include <exception>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/evaluate.hpp"
#include "runtime/exchange.hpp"
#include "runtime/matching.hpp"
#include "runtime/philox.hpp"
#include "runtime/safetensors.hpp"
#include "vit_cifar_small.h"
#include "vit_mnist.h"
#include "vit_notebook_small.h"
#include "vit_tiny_small.h"

namespace tessera::test {
namespace {

using runtime::Arena;
using runtime::Shape;
using runtime::Tensor;

constexpr std::int64_t batch = 3;

void write(const std::filesystem::path& folder, const runtime::Model& model) {
  const Arena parameters = Arena::of_floats(model.parameter_floats, model.alignment);
  runtime::check(model, model.init(parameters.floats(), 1));
  // Away from the zeros and ones that many parameters start with: two that change places must show.
  runtime::Random random(5, 0, 0);
  for (const tessera_parameter& row : model.parameters) {
    const std::int64_t count = runtime::elements(runtime::shape_of(row));
    for (float& value : std::span(parameters.floats() + row.offset, static_cast<std::size_t>(count)))
      value += static_cast<float>(0.2 * random.bell());
  }
  for (const char* dtype : {"F32", "F16", "BF16"})
    runtime::export_parameters(folder / (model.name + "." + dtype + ".safetensors"), model, parameters.floats(), dtype,
                               {});

  const auto& image = model.image_shape;
  const std::int64_t pixels = image[0] * image[1] * image[2];
  const Arena images = Arena::of_floats(batch * pixels, model.alignment);
  const Arena outputs = Arena::of_floats(batch * model.classes, model.alignment);
  const Arena scratch(model.forward_scratch_bytes(batch), model.alignment);
  const std::span<float> values(images.floats(), static_cast<std::size_t>(batch * pixels));
  for (float& value : values) value = static_cast<float>(random.bell());
  runtime::check(model, model.forward(parameters.floats(), runtime::packed(model, parameters.floats()).floats(),
                                      images.floats(), batch, outputs.floats(), scratch.data()));
  runtime::Safetensors answers;
  answers.tensors["images"] = Tensor::of({batch, image[0], image[1], image[2]}, std::span<const float>(values));
  answers.tensors["outputs"] =
      Tensor::of({batch, model.classes},
                 std::span<const float>(outputs.floats(), static_cast<std::size_t>(batch * model.classes)));
  runtime::write_safetensors(folder / (model.name + ".answers.safetensors"), answers);
}

#define TESSERA_EXPORTED(name_, NAME, ...)                                                                         \
  runtime::Model {                                                                                                 \
    .name = #name_, .declaration_hash = NAME##_DECLARATION_HASH, .parameters = name_##_parameters,                 \
    .parameter_floats = NAME##_PARAMETER_FLOATS, .packed_forward_floats = NAME##_PACKED_FORWARD_FLOATS,            \
    .optimizer_state = {}, .image_shape = {__VA_ARGS__}, .classes = NAME##_OUTPUT_FLOATS,                          \
    .alignment = NAME##_ALIGNMENT, .summary = "",                                                                  \
    .forward_scratch_bytes = [](std::int64_t b) -> std::int64_t { return NAME##_FORWARD_SCRATCH_BYTES(b); },       \
    .error = name_##_error, .init = name_##_init, .pack_forward = name_##_pack_forward, .forward = name_##_forward \
  }

void write_all(const std::filesystem::path& folder) {
  write(folder, TESSERA_EXPORTED(vit_mnist, VIT_MNIST, 1, 28, 28));
  write(folder, TESSERA_EXPORTED(vit_tiny_small, VIT_TINY_SMALL, 3, 32, 32));
  write(folder, TESSERA_EXPORTED(vit_cifar_small, VIT_CIFAR_SMALL, 3, 16, 16));
  write(folder, TESSERA_EXPORTED(vit_notebook_small, VIT_NOTEBOOK_SMALL, 3, 32, 24));
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_exports FOLDER\n";
    return 2;
  }
  try {
    tessera::test::write_all(argv[1]);
    return 0;
  } catch (const std::exception& wrong) {
    std::cerr << wrong.what() << '\n';
    return 1;
  }
}
