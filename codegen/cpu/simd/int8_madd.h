[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) { q_store_n(p, x, n); }

// Four products of a column at a time. vpmaddubsw takes magnitudes of weights, of which -128 is one, and values with a
// weight's sign: two products of at most 127 * 128 fit into 16 bits.
typedef __m512i ivec;
static constexpr int q_rows = 8, q_across = 2;
static inline ivec q_set(std::int32_t four) { return _mm512_set1_epi32(four); }
[[maybe_unused]] static inline ivec q_start(const std::int32_t*) { return _mm512_setzero_si512(); }
static inline ivec q_load(const int8* p) { return _mm512_loadu_si512(p); }
[[maybe_unused]] static inline void q_store(std::int32_t* p, ivec sum) { _mm512_storeu_si512(p, sum); }
static inline ivec q_add_products(ivec sum, ivec values, ivec weights) {
  const __m512i turned = _mm512_mask_sub_epi8(values, _mm512_movepi8_mask(weights), _mm512_setzero_si512(), values);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(weights), turned);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
