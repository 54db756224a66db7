// How long the elementary functions of emitted kernels take where nothing else does: what bounds a kernel made of them.
#pragma once

namespace tessera::bench {

enum class Function { none, exp, gelu };

/// y[i] = f(x[i]) for `vectors` vectors, by the instructions of a target, which the processor must have.
void apply_avx2(Function function, const float* x, float* y, int vectors);
void apply_avx512(Function function, const float* x, float* y, int vectors);

/// Seconds for one number, by the fastest of many runs over numbers in the nearest cache. wide: 512-bit vectors.
double seconds_of(Function function, bool wide);

}  // namespace tessera::bench
