// GCC 12 takes the undefined operands inside its own AVX-512 header for mistakes of the caller (its bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Everything up to the matching pop may use these instructions; the headers above must not, because their inline
// functions are merged with those of files for older processors. An OpenMP region must call a function for its vectors
// instead of naming one: clang outlines the region's body without these instructions.
