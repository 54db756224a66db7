// To the nearest, ties to even. What is not a number becomes anything: it makes the scale one.
[[maybe_unused]] static inline void v_store_int8(int8* p, vec x) {
  const __m256i words = _mm256_cvtps_epi32(x);
  const __m128i shorts = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(shorts, shorts));
}
[[maybe_unused]] static inline void v_store_strided_int8(int8* p, std::int64_t stride, vec x, int n) {
  int8 lane[lanes];
  v_store_int8(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) { v_store_strided_int8(p, 1, x, n); }
[[maybe_unused]] static inline void q_store_n(int8* p, vec x, int n) { v_store_n_int8(p, x, n); }
[[maybe_unused]] static inline vec v_load_int32(const std::int32_t* p) {
  return _mm256_cvtepi32_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// Four products of a column at a time. vpmaddubsw takes magnitudes of weights, of which -128 is one, and values with a
// weight's sign: two products of at most 127 * 128 fit into 16 bits.
typedef __m256i ivec;
static constexpr int q_rows = 4, q_across = 2;
static inline ivec q_set(std::int32_t four) { return _mm256_set1_epi32(four); }
[[maybe_unused]] static inline ivec q_start(const std::int32_t*) { return _mm256_setzero_si256(); }
static inline ivec q_load(const int8* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
[[maybe_unused]] static inline void q_store(std::int32_t* p, ivec sum) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), sum);
}
static inline ivec q_add_products(ivec sum, ivec values, ivec weights) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(values, weights));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
