// The 128 that left factors have more than they stand for times a column's weights: taken off each sum of the column.
[[maybe_unused]] static inline ivec q4_offset(ivec sum, ivec weights) {
  return q_add_products(sum, _mm512_set1_epi8(-128), weights);
}
static inline vec q4_reals(ivec sum, ivec offset) { return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, offset)); }
