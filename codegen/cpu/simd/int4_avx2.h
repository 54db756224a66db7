// As those of int8, with the magnitudes of weights, since -128 has no opposite: 128 * 127 twice fits into 16 bits.
[[maybe_unused]] static inline ivec q4_offset(ivec sum, ivec) { return sum; }
static inline ivec q4_add_products(ivec sum, ivec values, ivec weights) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(values, weights));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline vec q4_reals(ivec sum, ivec) { return _mm256_cvtepi32_ps(sum); }
