// The support text around products of bf16, pasted together in the order in which an emitted file has it.
// clang-format off
#include "tests/kernels/simd_table.hpp"

#include "codegen/cpu/simd/avx512_bf16_begin.h"
namespace {
#include "codegen/cpu/simd/avx512.h"
#include "codegen/cpu/simd/math.h"
#include "codegen/cpu/simd/narrow_bf16.h"
#include "codegen/cpu/simd/bf16_avx512.h"
#include "tests/kernels/bf16_table.inc"
#include "tests/kernels/simd_table.inc"
}  // namespace
#include "codegen/cpu/simd/avx512_bf16_end.h"
// clang-format on

namespace tessera::test {
namespace {
bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("avx512bf16");
}
}  // namespace

SimdTable avx512_bf16_table() {
  return {"avx512_bf16",    supported,          lanes,
          table_exp,        table_log,          table_tanh,
          table_erf,        table_gelu,         table_gelu_gradient,
          table_sqrt,       table_rsqrt,        table_negate,
          table_step,       table_add,          table_subtract,
          table_multiply,   table_divide,       table_maximum,
          table_minimum,    table_equal,        table_fma,
          table_iota,       table_sum,          table_largest,
          table_keep,       table_strided,      table_scatter,
          table_round_bf16, table_strided_bf16, table_broadcast_bf16,
          table_factors};
}

}  // namespace tessera::test
