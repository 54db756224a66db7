// The avx512 support text, pasted together in the order in which an emitted file has it.
// clang-format off
#include "bench/functions.hpp"

#include "codegen/cpu/simd/avx512_headers.h"
#include "codegen/cpu/simd/avx512_begin.h"
namespace {
#include "codegen/cpu/simd/avx512.h"
#include "codegen/cpu/simd/math.h"
#include "bench/functions.inc"
}  // namespace
#include "codegen/cpu/simd/x86_end.h"
// clang-format on

namespace tessera::bench {

void apply_avx512(Function function, const float* x, float* y, int vectors) { apply(function, x, y, vectors); }

}  // namespace tessera::bench
