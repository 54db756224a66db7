// tessera_choose: the next token of each image from its logits. Functions with C linkage, which allocate nothing.
#pragma once

#include <cstdint>

extern "C" {

/// Bytes of scratch for logits of so many codes, whatever the batch; to be aligned as a double.
constexpr std::int64_t tessera_choose_scratch_bytes(std::int64_t codes) { return 12 * codes; }

enum {
  TESSERA_CHOOSE_OK = 0,
  TESSERA_CHOOSE_ERROR_NULL = 1,
  TESSERA_CHOOSE_ERROR_SIZE = 2,
  TESSERA_CHOOSE_ERROR_TEMPERATURE = 3,
  TESSERA_CHOOSE_ERROR_TOP_K = 4,
  TESSERA_CHOOSE_ERROR_TOP_P = 5,
  TESSERA_CHOOSE_ERROR_UNIFORM = 6,
  TESSERA_CHOOSE_ERROR_LOGITS = 7
};

/// What an error code means, as a sentence.
const char* tessera_choose_error(int code);

/// tokens [batch] from logits [batch, codes]. uniforms null: the code of the largest logit, of equal ones the first.
/// Else, in this order: logits / temperature; the top_k largest and those equal to the k-th (0: all); softmax; the
/// smallest set of most probable codes whose sum exceeds top_p (1: all; Holtzman et al. 2020), of equal ones the first;
/// normalised anew; the smallest j with p[0] + ... + p[j] > uniforms[image], in double precision.
/// Returns TESSERA_CHOOSE_OK, or an error code and no token at all: a row without any number, with a NaN or with plus
/// infinity has none.
int tessera_choose(const float* logits, std::int64_t batch, std::int64_t codes, float temperature, std::int64_t top_k,
                   float top_p, const float* uniforms, std::int32_t* tokens, void* scratch);

/// uniforms [batch] in [0, 1), for images first, first + 1, ... at a position: a function of seed, image and position
/// alone (Philox4x32-10), so that an image's tokens depend neither on the batch nor on the images beside it.
void tessera_uniforms(std::uint64_t seed, std::int64_t first, std::int64_t batch, std::int64_t position,
                      float* uniforms);

}  // extern "C"
