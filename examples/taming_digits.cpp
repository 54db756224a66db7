// taming_digits: a transformer over the tokens of a VQGAN of digits. What it does is in runtime/taming_program.hpp.
#include "digits_decode.h"
#include "digits_encode.h"
#include "digits_gpt.h"
#include "runtime/taming_program.hpp"

namespace {

using tessera::runtime::Model;

/// What the programs of all three models have.
#define TESSERA_TABLE(model, name, NAME)                                 \
  model.declaration_hash = NAME##_DECLARATION_HASH;                      \
  model.parameters = name##_parameters;                                  \
  model.parameter_floats = NAME##_PARAMETER_FLOATS;                      \
  model.packed_forward_floats = NAME##_PACKED_FORWARD_FLOATS;            \
  model.alignment = NAME##_ALIGNMENT;                                    \
  model.forward_scratch_bytes = [](std::int64_t batch) -> std::int64_t { \
    return NAME##_FORWARD_SCRATCH_BYTES(batch);                          \
  };                                                                     \
  model.error = name##_error;                                            \
  model.isa = name##_isa;                                                \
  model.init = name##_init;                                              \
  model.pack_forward = name##_pack_forward

tessera::runtime::Taming digits() {
  tessera::runtime::Taming t;
  t.gpt.name = "taming_digits";
  TESSERA_TABLE(t.gpt, digits_gpt, DIGITS_GPT);
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
  t.encode.name = "digits_encode";
  TESSERA_TABLE(t.encode, digits_encode, DIGITS_ENCODE);
  t.encode.forward = digits_encode_forward;
  t.encode.image_shape[0] = 1;
  t.encode.image_shape[1] = t.encode.image_shape[2] = 28;
  t.decode.name = "digits_decode";
  TESSERA_TABLE(t.decode, digits_decode, DIGITS_DECODE);
  t.decode.forward = digits_decode_forward;
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
  return t;
}

}  // namespace

int main(int argc, char** argv) { return tessera::runtime::taming_program(digits(), argc, argv); }
