// The program vqgan_digits: the emitted parts of examples/vqgan_digits.hpp, and the numbers of its training.
#include "runtime/vqgan.hpp"
#include "vqgan_digits_decode.h"
#include "vqgan_digits_discriminator.h"
#include "vqgan_digits_generator.h"

int main(int argc, char** argv) {
  const tessera::runtime::Vqgan model{
      .name = "vqgan_digits",
      .generator = TESSERA_TRAINING_PHASE(vqgan_digits_generator, VQGAN_DIGITS_GENERATOR, "generator"),
      .discriminator = TESSERA_TRAINING_PHASE(vqgan_digits_discriminator, VQGAN_DIGITS_DISCRIMINATOR, "discriminator"),
      .encode = TESSERA_FORWARD_PASS(vqgan_digits_generator, VQGAN_DIGITS_GENERATOR),
      .reconstruct = TESSERA_FORWARD_PASS(vqgan_digits_discriminator, VQGAN_DIGITS_DISCRIMINATOR),
      .decode = TESSERA_FORWARD_PASS(vqgan_digits_decode, VQGAN_DIGITS_DECODE),
      .image_shape = {1, 28, 28},
      .tokens = {7, 7},
      .codes = 64,
      .batch = 32,
      .epochs = 2,
      .disc_start = 500,
      .generator_rate = 1e-3,
      .discriminator_rate = 5e-4,
      .later = 0.2,
      .summary = vqgan_digits_generator_summary};
  return tessera::runtime::vqgan_program(model, argc, argv);
}
