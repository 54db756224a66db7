#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Everything up to the matching pop may use these instructions; the headers above must not, because their inline
// functions are merged with those of files for older processors. An OpenMP region must call a function for its vectors
// instead of naming one: clang outlines the region's body without these instructions.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
