// Rounded in the upper halves of the lanes; what is in the lower ones is not to be read. What is not a number stays so.
[[maybe_unused]] static inline __m256i v_rounded_bits(vec x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
[[maybe_unused]] static inline vec v_widened(__m128i narrow) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(narrow), 16));
}
[[maybe_unused]] static inline __m128i v_narrowed(vec x) {
  const __m256i narrow = _mm256_srli_epi32(v_rounded_bits(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(narrow), _mm256_extracti128_si256(narrow, 1));
}

[[maybe_unused]] static inline vec v_set_bf16(bf16 x) {
  // From memory to all lanes without a general register on its way, which would take longer than what is multiplied.
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_set1_epi16(static_cast<std::int16_t>(x)), 16));
}
[[maybe_unused]] static inline vec v_load_bf16(const bf16* p) {
  return v_widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
[[maybe_unused]] static inline vec v_load_strided_bf16(const bf16* p, std::int64_t stride, int n) {
  alignas(16) bf16 lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return v_load_bf16(lane);
}
[[maybe_unused]] static inline vec v_load_n_bf16(const bf16* p, int n) { return v_load_strided_bf16(p, 1, n); }
[[maybe_unused]] static inline void v_store_bf16(bf16* p, vec x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v_narrowed(x));
}
[[maybe_unused]] static inline void v_store_strided_bf16(bf16* p, std::int64_t stride, vec x, int n) {
  alignas(16) bf16 lane[lanes];
  v_store_bf16(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
[[maybe_unused]] static inline void v_store_n_bf16(bf16* p, vec x, int n) { v_store_strided_bf16(p, 1, x, n); }
