// A model through the C API of both back ends, each program of it once and some steps of training: shared by the run
// on the CPU (models_test.cpp) and on a GPU (gpu_check.cpp), which bring a DeviceArray of their own: see toy_runs.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "toy_mnist.h"  // tessera_parameter, as in every model's header

namespace tessera::test {

using Floats = std::vector<float>;

inline constexpr std::int64_t batch = 3;
inline constexpr std::uint64_t seed = 0x0123456789abcdef;
inline constexpr float rate = 1e-3f;

/// What one training leaves behind, and what the other programs make of the starting parameters.
struct Results {
  Floats forward, evaluated, evaluated_loss, image_gradients, maps, magnitudes, outputs, loss, gradients, parameters,
      optimizer;
};

/// A model through the C API of both back ends.
struct Model {
  std::string name;
  std::span<const tessera_parameter> table;  ///< of its parameters
  std::size_t parameter_floats, packed_floats, optimizer_floats, image_floats, output_floats, map_floats, layers;
  void (*start)(float* parameters);
  Results (*on_cpu)(const Model&, const Floats& parameters, const Floats& images, const std::int32_t* labels);
  Results (*on_gpu)(const Model&, const Floats& parameters, const Floats& images, const std::int32_t* labels);
  int steps = 3;
};

inline void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

inline Floats starting_parameters(const Model& m) {
  Floats parameters(m.parameter_floats);
  m.start(parameters.data());
  // What is divided by starts above zero: running variances, and a scale of images. So do weights of norms: where they
  // are zeros, no gradient goes on to a branch.
  for (const tessera_parameter& row : m.table) {
    const std::string_view name = row.name;
    const bool norm = name.ends_with("norm1.weight") || name.ends_with("norm2.weight");
    if (norm && parameters[row.offset] != 0) continue;
    if (!norm && !name.ends_with("running_var") && !name.ends_with("scaling_layer.scale")) continue;
    std::int64_t count = 1;
    for (int d = 0; d < row.rank; ++d) count *= row.shape[d];
    for (float* x = parameters.data() + row.offset; count > 0; --count, ++x) *x = (norm ? 0.2f : 0.5f) + std::fabs(*x);
  }
  return parameters;
}
inline Floats some_images(const Model& m) {
  Floats images(m.image_floats * static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  return images;
}
/// Classes, of a model that has some.
inline std::vector<std::int32_t> some_labels(const Model& m) {
  std::vector<std::int32_t> labels;
  for (const std::size_t label : {3, 0, 9}) labels.push_back(static_cast<std::int32_t>(label % m.output_floats));
  return labels;
}

inline constexpr std::size_t count(std::size_t of_image) { return of_image * static_cast<std::size_t>(batch); }

/// What a call gave back must be 0.
inline void succeed(int code) {
  if (code) throw std::runtime_error("a call gave back error " + std::to_string(code));
}

}  // namespace tessera::test

#define TESSERA_TOY_MODEL(name, NAME) TESSERA_TOY_MODEL_BESIDE(name, NAME, name, NAME)
/// The model `gpu` with factors of bf16, beside `cpu`, the same one in single precision.
#define TESSERA_TOY_MODEL_BF16(cpu, CPU) TESSERA_TOY_MODEL_BESIDE(cpu, CPU, cpu##_bf16, CPU##_BF16)

// The two functions of a model. DeviceArray is what the including file calls memory of the device: it starts as
// not-a-number, and scratch memory is as long as the header says.
#define TESSERA_TOY_MODEL_BESIDE(cpu, CPU, gpu, GPU)                                                                   \
  Model {                                                                                                              \
    #gpu, cpu##_parameters, CPU##_PARAMETER_FLOATS, CPU##_PACKED_FLOATS, CPU##_OPTIMIZER_FLOATS, CPU##_IMAGE_FLOATS,   \
        CPU##_OUTPUT_FLOATS, CPU##_ATTENTION_FLOATS, CPU##_LAYERS, [](float* p) { cpu##_init(p, 7); },                 \
        [](const Model& m, const Floats& start, const Floats& images, const std::int32_t* labels) {                    \
          Results r;                                                                                                   \
          r.forward.resize(count(m.output_floats)), r.evaluated = r.outputs = r.forward;                               \
          r.evaluated_loss.resize(1), r.loss.resize(1), r.gradients.resize(m.parameter_floats);                        \
          r.image_gradients.resize(images.size()), r.maps.resize(count(m.map_floats)),                                 \
              r.magnitudes.resize(count(m.layers));                                                                    \
          r.optimizer.resize(m.optimizer_floats), r.parameters = start;                                                \
          Floats packed(m.packed_floats + 16), forward(CPU##_FORWARD_SCRATCH_BYTES(batch) / 4),                        \
              evaluate(CPU##_EVALUATE_SCRATCH_BYTES(batch) / 4), train(CPU##_TRAIN_SCRATCH_BYTES(batch) / 4),          \
              input(CPU##_INPUT_GRADIENT_SCRATCH_BYTES(batch) / 4), maps(CPU##_INSPECT_SCRATCH_BYTES(batch) / 4);      \
          const float *p = r.parameters.data(), *x = images.data();                                                    \
          succeed(cpu##_pack(p, packed.data()));                                                                       \
          succeed(cpu##_forward(p, packed.data(), x, batch, r.forward.data(), forward.data()));                        \
          succeed(cpu##_evaluate(p, packed.data(), x, labels, batch, r.evaluated.data(), r.evaluated_loss.data(),      \
                                 evaluate.data()));                                                                    \
          succeed(cpu##_input_gradient(p, packed.data(), x, labels, batch, r.evaluated.data(),                         \
                                       r.evaluated_loss.data(), r.image_gradients.data(), input.data()));              \
          succeed(cpu##_inspect(p, packed.data(), x, batch, r.maps.data(), r.magnitudes.data(), maps.data()));         \
          for (std::int64_t step = 1; step <= m.steps; ++step)                                                         \
            succeed(cpu##_train_step(r.parameters.data(), packed.data(), r.gradients.data(), r.optimizer.data(), x,    \
                                     labels, batch, batch, seed, step, rate, r.outputs.data(), r.loss.data(),          \
                                     train.data()));                                                                   \
          return r;                                                                                                    \
        },                                                                                                             \
        [](const Model& m, const Floats& start, const Floats& images, const std::int32_t* labels) {                    \
          DeviceArray<float> forward(count(m.output_floats)), evaluated(count(m.output_floats)),                       \
              outputs(count(m.output_floats)), evaluated_loss(1), loss(1), gradients(m.parameter_floats),              \
              image_gradients(images.size()), maps(count(m.map_floats)), magnitudes(count(m.layers)), x(images),       \
              p(start), packed((GPU##_CUDA_PACKED_BYTES + 3) / 4), optimizer(Floats(m.optimizer_floats)),              \
              scratch1(GPU##_CUDA_FORWARD_SCRATCH_BYTES(batch) / 4, true),                                             \
              scratch2(GPU##_CUDA_EVALUATE_SCRATCH_BYTES(batch) / 4, true),                                            \
              scratch3(GPU##_CUDA_TRAIN_SCRATCH_BYTES(batch) / 4, true),                                               \
              scratch4(GPU##_CUDA_INPUT_GRADIENT_SCRATCH_BYTES(batch) / 4, true),                                      \
              scratch5(GPU##_CUDA_INSPECT_SCRATCH_BYTES(batch) / 4, true);                                             \
          DeviceArray<std::int32_t> classes(std::vector<std::int32_t>(labels, labels + batch));                        \
          DeviceArray<tessera_cuda_step> step(std::vector<tessera_cuda_step>{{seed, 1, rate, 0}});                     \
          succeed(gpu##_cuda_pack(p.data(), packed.data(), nullptr));                                                  \
          succeed(                                                                                                     \
              gpu##_cuda_forward(p.data(), packed.data(), x.data(), batch, forward.data(), scratch1.data(), nullptr)); \
          succeed(gpu##_cuda_evaluate(p.data(), packed.data(), x.data(), classes.data(), batch, evaluated.data(),      \
                                      evaluated_loss.data(), scratch2.data(), nullptr));                               \
          succeed(gpu##_cuda_input_gradient(p.data(), packed.data(), x.data(), classes.data(), batch,                  \
                                            evaluated.data(), evaluated_loss.data(), image_gradients.data(),           \
                                            scratch4.data(), nullptr));                                                \
          succeed(gpu##_cuda_inspect(p.data(), packed.data(), x.data(), batch, maps.data(), magnitudes.data(),         \
                                     scratch5.data(), nullptr));                                                       \
          for (int i = 0; i < m.steps; ++i) {                                                                          \
            succeed(gpu##_cuda_train_step(p.data(), packed.data(), gradients.data(), optimizer.data(), x.data(),       \
                                          classes.data(), step.data(), batch, outputs.data(), loss.data(),             \
                                          scratch3.data(), nullptr));                                                  \
            succeed(gpu##_cuda_next_step(step.data(), nullptr));                                                       \
          }                                                                                                            \
          return Results{forward.values(),   evaluated.values(),  evaluated_loss.values(), image_gradients.values(),   \
                         maps.values(),      magnitudes.values(), outputs.values(),        loss.values(),              \
                         gradients.values(), p.values(),          optimizer.values()};                                 \
        }                                                                                                              \
  }
