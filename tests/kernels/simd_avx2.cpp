// The avx2 support text, pasted together in the order in which an emitted file has it.
// clang-format off
#include "tests/kernels/simd_table.hpp"

#include "codegen/cpu/simd/avx2_begin.h"
namespace {
#include "codegen/cpu/simd/avx2.h"
#include "codegen/cpu/simd/math.h"
#include "codegen/cpu/simd/bf16_avx2.h"
#include "tests/kernels/bf16_table.inc"
#include "tests/kernels/simd_table.inc"
}  // namespace
#include "codegen/cpu/simd/avx2_end.h"
// clang-format on

namespace tessera::test {
namespace {
bool supported() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
}  // namespace

SimdTable avx2_table() {
  return {"avx2",           supported,          lanes,
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
