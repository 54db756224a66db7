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
  tessera::runtime::Taming t;
  t.gpt.name = "taming_digits";
  t.gpt.declaration_hash = DIGITS_GPT_DECLARATION_HASH;
  t.gpt.parameters = digits_gpt_parameters;
  t.gpt.parameter_floats = DIGITS_GPT_PARAMETER_FLOATS;
  t.gpt.packed_forward_floats = DIGITS_GPT_PACKED_FORWARD_FLOATS;
  t.gpt.alignment = DIGITS_GPT_ALIGNMENT;
  t.gpt.error = digits_gpt_error;
  t.gpt.summary = digits_gpt_summary();
  t.gpt.isa = digits_gpt_isa;
  t.gpt.init = digits_gpt_init;
  t.gpt.pack_forward = digits_gpt_pack_forward;
  t.gpt.packed_floats = DIGITS_GPT_PACKED_FLOATS;
  t.gpt.optimizer_state = {"optimizer.m.", "optimizer.v."};
  t.gpt.pack = digits_gpt_pack;
  t.gpt.images_at_once = digits_gpt_images_at_once;
  t.gpt.train_scratch_bytes = [](std::int64_t at_once) -> std::int64_t {
    return DIGITS_GPT_TRAIN_SCRATCH_BYTES(at_once);
  };
  t.gpt.evaluate_scratch_bytes = [](std::int64_t batch) -> std::int64_t {
    return DIGITS_GPT_EVALUATE_SCRATCH_BYTES(batch);
  };
  t.encode = TESSERA_FORWARD_PASS(vqgan_digits_encode, VQGAN_DIGITS_ENCODE);
  t.decode = TESSERA_FORWARD_PASS(vqgan_digits_decode, VQGAN_DIGITS_DECODE);
  t.image_shape[0] = 1;
  t.image_shape[1] = t.image_shape[2] = 28;
  t.tokens = {
      .name = "taming_digits",
      .codes = DIGITS_GPT_CODES,
      .window = {7, 7},
      .cache_bytes = [](std::int64_t batch) -> std::int64_t { return DIGITS_GPT_CACHE_BYTES(batch); },
      .step_scratch_bytes = [](std::int64_t batch) -> std::int64_t { return DIGITS_GPT_STEP_SCRATCH_BYTES(batch); },
      .step = digits_gpt_step,
      .error = digits_gpt_error};
  t.classes = 10;
  t.train_step = digits_gpt_train_step;
  t.evaluate = digits_gpt_evaluate;
#ifdef TESSERA_CUDA  // taming_digits_on_gpu.cu
  t.gpt.cuda = &gpt_on_cuda;
  t.encode.cuda = &encode_on_cuda;
  t.decode.cuda = &decode_on_cuda;
#endif
  return t;
}

}  // namespace

int main(int argc, char** argv) { return tessera::runtime::taming_program(digits(), argc, argv); }
