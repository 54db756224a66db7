// The avx512 support text, pasted together in the order in which an emitted file has it.
// clang-format off
#include <algorithm>
#include <utility>

#include "tests/kernels/simd_table.hpp"

#include "codegen/cpu/simd/avx512_headers.h"
#include "codegen/cpu/simd/avx512_begin.h"
namespace {
#include "codegen/cpu/simd/avx512.h"
#include "codegen/cpu/simd/math.h"
#include "codegen/cpu/simd/trig.h"
#include "codegen/cpu/simd/transpose.h"
#include "codegen/cpu/simd/fill.h"
#include "codegen/cpu/simd/narrow_avx512.h"
#include "codegen/cpu/simd/bf16.h"
#include "codegen/cpu/simd/bf16_avx512.h"
#include "tests/kernels/simd_table.inc"
}  // namespace
#include "codegen/cpu/simd/x86_end.h"
// clang-format on

namespace tessera::test {
namespace {
bool supported() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
}
}  // namespace

SimdTable avx512_table() { return make_table("avx512", supported); }

}  // namespace tessera::test
