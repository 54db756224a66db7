// The program vqgan_digits: the emitted parts of examples/vqgan_digits.hpp, and the numbers of its training.
#include "runtime/vqgan.hpp"
#include "vqgan_digits_decode.h"
#include "vqgan_digits_discriminator.h"
#include "vqgan_digits_generator.h"

#ifdef TESSERA_CUDA
extern const tessera::runtime::Cuda generator_on_cuda, discriminator_on_cuda, decode_on_cuda;
#endif

int main(int argc, char** argv) {
  tessera::runtime::Vqgan model{
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
#ifdef TESSERA_CUDA  // vqgan_digits_on_gpu.cu
  model.generator.cuda = model.encode.cuda = &generator_on_cuda;
  model.discriminator.cuda = model.reconstruct.cuda = &discriminator_on_cuda;
  model.decode.cuda = &decode_on_cuda;
#endif
  return tessera::runtime::vqgan_program(model, argc, argv);
}
