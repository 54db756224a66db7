// The program of a transformer over the tokens of a VQGAN: it trains on a data set's tokens, and draws pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/forward_pass.hpp"
#include "runtime/model.hpp"
#include "runtime/sampling.hpp"

namespace tessera::runtime {

/// A transformer over tokens, as it was generated: TESSERA_TOKEN_TRANSFORMER makes one.
struct TokenTransformer {
  Model model;        ///< without what is of pictures
  TokenModel tokens;  ///< its step
  /// NAME_train_step and NAME_evaluate.
  int (*train_step)(float* parameters, float* packed, float* gradients, float* optimizer, const std::int32_t* tokens,
                    const std::int32_t* labels, std::int64_t batch, std::int64_t at_once, std::uint64_t seed,
                    std::int64_t step, float learning_rate, float* outputs, float* loss, void* scratch) = nullptr;
  int (*evaluate)(const float* parameters, const float* packed, const std::int32_t* tokens, const std::int32_t* labels,
                  std::int64_t batch, float* outputs, float* loss, void* scratch) = nullptr;
};

/// The keys of what Adam keeps, checked against what the emitted step reads and writes.
template <std::int64_t optimizer_floats, std::int64_t parameter_floats>
std::vector<std::string> two_moments() {
  static_assert(optimizer_floats == 2 * parameter_floats,
                "the program of a token transformer keeps two moments of each parameter: its recipe's optimiser is "
                "Adam or AdamW, without an average of the parameters");
  return {"optimizer.m.", "optimizer.v."};
}

/// The three models, and how the transformer is trained.
struct Taming {
  TokenTransformer transformer;
  ForwardPass encode;  ///< pictures in [-1, 1] -> the numbers of their codes
  ForwardPass decode;  ///< these numbers -> the picture; holds the codebook
  std::int64_t image_shape[3]{};
  std::int64_t classes = 0;  ///< the first token is the class; 0: it is `start`
  std::int64_t start = 0;
  std::int64_t steps = 2000, batch = 64;
  double learning_rate = 2e-3;
};

/// main: the commands train, eval, sample, import, export, summary and bench. Returns the exit status; an error is one
/// sentence on standard error.
int taming_program(const Taming& taming, int argc, char** argv);

}  // namespace tessera::runtime

/// The transformer whose functions begin with `prefix` and whose macros begin with `PREFIX`, in the program `said`; its
/// window of positions has so many rows and columns.
#define TESSERA_TOKEN_TRANSFORMER(prefix, PREFIX, said, window_rows, window_columns)                                 \
  ::tessera::runtime::TokenTransformer {                                                                             \
    .model = {                                                                                                       \
        .name = said,                                                                                                \
        .declaration_hash = PREFIX##_DECLARATION_HASH,                                                               \
        .parameters = prefix##_parameters,                                                                           \
        .parameter_floats = PREFIX##_PARAMETER_FLOATS,                                                               \
        .packed_floats = PREFIX##_PACKED_FLOATS,                                                                     \
        .packed_forward_floats = PREFIX##_PACKED_FORWARD_FLOATS,                                                     \
        .optimizer_state = ::tessera::runtime::two_moments<PREFIX##_OPTIMIZER_FLOATS, PREFIX##_PARAMETER_FLOATS>(),  \
        .alignment = PREFIX##_ALIGNMENT,                                                                             \
        .summary = prefix##_summary(),                                                                               \
        .evaluate_scratch_bytes = [](std::int64_t b) -> std::int64_t { return PREFIX##_EVALUATE_SCRATCH_BYTES(b); }, \
        .train_scratch_bytes = [](std::int64_t b) -> std::int64_t { return PREFIX##_TRAIN_SCRATCH_BYTES(b); },       \
        .images_at_once = prefix##_images_at_once,                                                                   \
        .error = prefix##_error,                                                                                     \
        .isa = prefix##_isa,                                                                                         \
        .init = prefix##_init,                                                                                       \
        .pack = prefix##_pack,                                                                                       \
        .pack_forward = prefix##_pack_forward},                                                                      \
    .tokens = {.name = said,                                                                                         \
               .codes = PREFIX##_CODES,                                                                              \
               .window = {window_rows, window_columns},                                                              \
               .cache_bytes = [](std::int64_t b) -> std::int64_t { return PREFIX##_CACHE_BYTES(b); },                \
               .step_scratch_bytes = [](std::int64_t b) -> std::int64_t { return PREFIX##_STEP_SCRATCH_BYTES(b); },  \
               .step = prefix##_step,                                                                                \
               .error = prefix##_error},                                                                             \
    .train_step = prefix##_train_step, .evaluate = prefix##_evaluate                                                 \
  }
