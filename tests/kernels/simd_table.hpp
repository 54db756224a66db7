// The vector operations of one instruction set as plain functions over arrays, so that one test serves all of them.
#pragma once

#include <cstdint>

namespace tessera::test {

using Unary = void (*)(const float* x, float* y, int count);
using Binary = void (*)(const float* a, const float* b, float* y, int count);
using Ternary = void (*)(const float* a, const float* b, const float* c, float* y, int count);

/// Arrays hold `count` numbers, any count; the last vector is loaded and stored with v_load_n and v_store_n.
struct SimdTable {
  const char* isa;
  bool (*supported)();
  int lanes;
  Unary exp, log, tanh, erf, sin, cos, gelu, gelu_gradient, sqrt, rsqrt, negate, step;
  Binary add, subtract, multiply, divide, maximum, minimum, equal;
  Ternary fma, fms, fnma;
  void (*iota)(float* y);                                                 ///< `lanes` numbers
  float (*sum)(const float* x);                                           ///< of `lanes` numbers
  float (*largest)(const float* x);                                       ///< of `lanes` numbers
  void (*keep)(const float* x, int n, float other, float* y);             ///< `lanes` numbers
  void (*strided)(const float* x, std::int64_t stride, float* y, int n);  ///< loads with stride, stores whole
  void (*scatter)(const float* x, float* y, std::int64_t stride, int n);  ///< loads whole, stores with stride
  /// to[k * to_row + i] = from[i * from_row + k]; a multiple of the lanes of k
  void (*transposed)(const float* from, std::int64_t from_row, float* to, std::int64_t to_row, std::int64_t depth,
                     std::int64_t count);
  void (*filled)(float* p, std::int64_t apart, std::int64_t count, float value);
  Unary round_bf16;
  void (*strided_bf16)(const float* x, std::int64_t stride, float* y, int n);  ///< through bf16, stored with stride
  float (*broadcast_bf16)(float x);                                            ///< the sum over all lanes
  void (*factors)(const std::int32_t* random, std::int64_t stream, std::int64_t element, std::int64_t step,
                  std::int64_t threshold, float scale, float* y);  ///< `lanes` factors of dropout
};

SimdTable scalar_table();
SimdTable avx2_table();
SimdTable avx512_table();
SimdTable avx512_bf16_table();
SimdTable neon_table();

}  // namespace tessera::test
