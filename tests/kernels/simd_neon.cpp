// The neon support text, pasted together in the order in which an emitted file has it.
// clang-format off
#include <algorithm>
#include <utility>

#include "tests/kernels/simd_table.hpp"

#include "codegen/cpu/simd/neon_begin.h"
namespace {
#include "codegen/cpu/simd/neon.h"
#include "codegen/cpu/simd/math.h"
#include "codegen/cpu/simd/trig.h"
#include "codegen/cpu/simd/transpose.h"
#include "codegen/cpu/simd/fill.h"
#include "codegen/cpu/simd/bf16.h"
#include "codegen/cpu/simd/bf16_neon.h"
#include "tests/kernels/simd_table.inc"
}  // namespace
#include "codegen/cpu/simd/neon_end.h"
// clang-format on

namespace tessera::test {
namespace {
bool supported() { return true; }
}  // namespace

SimdTable neon_table() { return make_table("neon", supported); }

}  // namespace tessera::test
