// The parts of a VQGAN's and of a transformer's program on the CPU that stands for a GPU, for vqgan_phases_test.cpp,
// vqgan_on_gpu_test.cpp and taming_on_gpu_test.cpp.
#include "cuda_gpt_cuda.h"
#include "cuda_vqgan_decode_cuda.h"
#include "cuda_vqgan_discriminator_cuda.h"
#include "cuda_vqgan_generator_cuda.h"
#include "examples/on_cuda.hpp"

extern const tessera::runtime::Cuda generator_on_cuda, discriminator_on_cuda, decode_on_cuda, gpt_on_cuda;
const tessera::runtime::Cuda generator_on_cuda = TESSERA_PHASE_ON_CUDA(cuda_vqgan_generator, CUDA_VQGAN_GENERATOR);
const tessera::runtime::Cuda discriminator_on_cuda =
    TESSERA_PHASE_ON_CUDA(cuda_vqgan_discriminator, CUDA_VQGAN_DISCRIMINATOR);
const tessera::runtime::Cuda decode_on_cuda = TESSERA_FORWARD_ON_CUDA(cuda_vqgan_decode, CUDA_VQGAN_DECODE);
const tessera::runtime::Cuda gpt_on_cuda = TESSERA_TOKENS_ON_CUDA(cuda_gpt, CUDA_GPT);
