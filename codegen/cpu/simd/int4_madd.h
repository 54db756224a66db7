// A group's sum of products as reals.
[[maybe_unused]] static inline ivec q4_offset(ivec sum, ivec) { return sum; }
static inline vec q4_reals(ivec sum, ivec) { return _mm512_cvtepi32_ps(sum); }
