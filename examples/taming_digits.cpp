// taming_digits: a transformer over the tokens of a VQGAN of digits. What it does is in runtime/taming_program.hpp.
#include "digits_gpt.h"
#include "runtime/taming_program.hpp"
#include "vqgan_digits_decode.h"
#include "vqgan_digits_encode.h"

#ifdef TESSERA_CUDA
extern const tessera::runtime::Cuda gpt_on_cuda, encode_on_cuda, decode_on_cuda;
#endif

namespace {

tessera::runtime::Taming digits() {
  tessera::runtime::Taming t{.transformer = TESSERA_TOKEN_TRANSFORMER(digits_gpt, DIGITS_GPT, "taming_digits", 7, 7),
                             .encode = TESSERA_FORWARD_PASS(vqgan_digits_encode, VQGAN_DIGITS_ENCODE),
                             .decode = TESSERA_FORWARD_PASS(vqgan_digits_decode, VQGAN_DIGITS_DECODE),
                             .image_shape = {1, 28, 28},
                             .classes = 10};
#ifdef TESSERA_CUDA  // taming_digits_on_gpu.cu
  t.transformer.model.cuda = &gpt_on_cuda;
  t.encode.cuda = &encode_on_cuda;
  t.decode.cuda = &decode_on_cuda;
#endif
  return t;
}

}  // namespace

const tessera::runtime::Taming taming = digits();

int main(int argc, char** argv) { return tessera::runtime::taming_program(taming, argc, argv); }
