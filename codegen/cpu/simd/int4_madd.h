// As those of int8, with the magnitudes of weights, since -128 has no opposite: 128 * 127 twice fits into 16 bits.
[[maybe_unused]] static inline ivec q4_offset(ivec sum, ivec) { return sum; }
static inline ivec q4_add_products(ivec sum, ivec values, ivec weights) {
  const __m512i turned = _mm512_mask_sub_epi8(values, _mm512_movepi8_mask(weights), _mm512_setzero_si512(), values);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(weights), turned);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
static inline vec q4_reals(ivec sum, ivec) { return _mm512_cvtepi32_ps(sum); }
