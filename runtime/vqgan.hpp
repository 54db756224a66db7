// A program around a VQGAN: it trains one by its two halves, and makes tokens of pictures and pictures of tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/halves.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// An emitted forward pass, as a table. Functions return 0 or an error code that `error` puts into words.
struct ForwardPass {
  std::span<const tessera_parameter> parameters;
  std::int64_t parameter_floats = 0, packed_floats = 0, output_floats = 0, alignment = 64;
  std::int64_t (*scratch_bytes)(std::int64_t batch) = nullptr;
  const char* (*error)(int code) = nullptr;
  int (*pack)(const float* parameters, float* packed) = nullptr;
  int (*forward)(const float* parameters, const float* packed, const float* images, std::int64_t batch, float* outputs,
                 void* scratch) = nullptr;
};

/// All that a program knows of its model: the emitted parts, and how it is trained.
struct Vqgan {
  std::string name;  ///< of the program
  TrainingHalf generator, discriminator;
  ForwardPass encode;       ///< images to the numbers of codes, row by row
  ForwardPass reconstruct;  ///< images to images
  ForwardPass decode;       ///< numbers of codes to images
  std::int64_t image_shape[3]{};
  Grid tokens{};  ///< of an image
  std::int64_t codes = 0;
  std::int64_t batch = 32, epochs = 1;
  std::int64_t disc_start = 0;  ///< steps before the adversarial losses count
  double generator_rate = 1e-3, discriminator_rate = 5e-4;
  double later = 1;  ///< times the generator's rate from disc_start on
  const char* (*summary)() = nullptr;
};

/// main of such a program: train, eval, reconstruct, encode, decode, export, import, summary, bench. Returns the exit
/// code; errors are one sentence on standard error.
int vqgan_program(const Vqgan& model, int argc, char** argv);

}  // namespace tessera::runtime

/// The table of the forward pass whose functions begin with `model` and whose macros begin with `MODEL`.
#define TESSERA_FORWARD_PASS(model, MODEL)                                                                    \
  ::tessera::runtime::ForwardPass {                                                                           \
    .parameters = model##_parameters, .parameter_floats = MODEL##_PARAMETER_FLOATS,                           \
    .packed_floats = MODEL##_PACKED_FORWARD_FLOATS, .output_floats = MODEL##_OUTPUT_FLOATS,                   \
    .alignment = MODEL##_ALIGNMENT,                                                                           \
    .scratch_bytes = [](std::int64_t batch) -> std::int64_t { return MODEL##_FORWARD_SCRATCH_BYTES(batch); }, \
    .error = model##_error, .pack = model##_pack_forward, .forward = model##_forward                          \
  }
