// The emitted parts of taming_digits on a GPU, for taming_digits.cpp where it is compiled with TESSERA_CUDA.
#include "digits_gpt_cuda.h"
#include "examples/on_cuda.hpp"
#include "vqgan_digits_decode_cuda.h"
#include "vqgan_digits_encode_cuda.h"

extern const tessera::runtime::Cuda gpt_on_cuda, encode_on_cuda, decode_on_cuda;
const tessera::runtime::Cuda gpt_on_cuda = TESSERA_TOKENS_ON_CUDA(digits_gpt, DIGITS_GPT);
const tessera::runtime::Cuda encode_on_cuda = TESSERA_FORWARD_ON_CUDA(vqgan_digits_encode, VQGAN_DIGITS_ENCODE);
const tessera::runtime::Cuda decode_on_cuda = TESSERA_FORWARD_ON_CUDA(vqgan_digits_decode, VQGAN_DIGITS_DECODE);
