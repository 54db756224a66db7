// The avx2 support text, pasted together in the order in which an emitted file has it.
// clang-format off
#include <algorithm>
#include <utility>

#include "tests/kernels/simd_table.hpp"

#include "codegen/cpu/simd/avx2_begin.h"
namespace {
#include "codegen/cpu/simd/avx2.h"
#include "codegen/cpu/simd/math.h"
#include "codegen/cpu/simd/trig.h"
#include "codegen/cpu/simd/transpose.h"
#include "codegen/cpu/simd/fill.h"
#include "codegen/cpu/simd/bf16.h"
#include "codegen/cpu/simd/bf16_avx2.h"
#include "tests/kernels/simd_table.inc"
}  // namespace
#include "codegen/cpu/simd/x86_end.h"
// clang-format on

namespace tessera::test {
namespace {
bool supported() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
}  // namespace

SimdTable avx2_table() { return make_table("avx2", supported); }

}  // namespace tessera::test
