// A program around a VQGAN: it trains one by its two phases, and makes tokens of pictures and pictures of tokens.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/forward_pass.hpp"
#include "runtime/model.hpp"
#include "runtime/phases.hpp"

namespace tessera::runtime {

/// All that a program knows of its model: the emitted parts, and how it is trained.
struct Vqgan {
  std::string name;  ///< of the program
  TrainingPhase generator, discriminator;
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
