// The emitted parts of vqgan_digits on a GPU, for vqgan_digits.cpp where it is compiled with TESSERA_CUDA.
#include "examples/on_cuda.hpp"
#include "vqgan_digits_decode_cuda.h"
#include "vqgan_digits_discriminator_cuda.h"
#include "vqgan_digits_generator_cuda.h"

extern const tessera::runtime::Cuda generator_on_cuda, discriminator_on_cuda, decode_on_cuda;
const tessera::runtime::Cuda generator_on_cuda = TESSERA_PHASE_ON_CUDA(vqgan_digits_generator, VQGAN_DIGITS_GENERATOR);
const tessera::runtime::Cuda discriminator_on_cuda =
    TESSERA_PHASE_ON_CUDA(vqgan_digits_discriminator, VQGAN_DIGITS_DISCRIMINATOR);
const tessera::runtime::Cuda decode_on_cuda = TESSERA_FORWARD_ON_CUDA(vqgan_digits_decode, VQGAN_DIGITS_DECODE);
