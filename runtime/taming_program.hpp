// The program of a transformer over the tokens of a VQGAN: it trains on a data set's tokens, and draws pictures.
#pragma once

#include <cstdint>

#include "runtime/forward_pass.hpp"
#include "runtime/model.hpp"
#include "runtime/sampling.hpp"

namespace tessera::runtime {

/// The three models, as they were generated, and how the transformer is trained.
struct Taming {
  Model gpt;           ///< without what is of pictures
  TokenModel tokens;   ///< its step
  ForwardPass encode;  ///< pictures in [-1, 1] -> the numbers of their codes
  ForwardPass decode;  ///< these numbers -> the picture; holds the codebook
  std::int64_t image_shape[3]{};
  std::int64_t classes = 0;  ///< the first token is the class; 0: it is `start`
  std::int64_t start = 0;
  std::int64_t steps = 2000, batch = 64;
  double learning_rate = 2e-3;
  /// NAME_train_step and NAME_evaluate of the transformer.
  int (*train_step)(float* parameters, float* packed, float* gradients, float* optimizer, const std::int32_t* tokens,
                    const std::int32_t* labels, std::int64_t batch, std::int64_t at_once, std::uint64_t seed,
                    std::int64_t step, float learning_rate, float* outputs, float* loss, void* scratch) = nullptr;
  int (*evaluate)(const float* parameters, const float* packed, const std::int32_t* tokens, const std::int32_t* labels,
                  std::int64_t batch, float* outputs, float* loss, void* scratch) = nullptr;
};

/// main: the commands train, eval, sample, import, export, summary and bench. Returns the exit status; an error is one
/// sentence on standard error.
int taming_program(const Taming& taming, int argc, char** argv);

}  // namespace tessera::runtime
