[[maybe_unused]] static inline vec v_widened(__m256i narrow) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}

[[maybe_unused]] static inline vec v_set_bf16(bf16 x) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << 16)));
}
[[maybe_unused]] static inline vec v_load_bf16(const bf16* p) {
  return v_widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
[[maybe_unused]] static inline vec v_load_n_bf16(const bf16* p, int n) {
  return v_widened(_mm256_maskz_loadu_epi16(v_first(n), p));
}
[[maybe_unused]] static inline vec v_load_strided_bf16(const bf16* p, std::int64_t stride, int n) {
  alignas(32) bf16 lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return v_load_bf16(lane);
}
[[maybe_unused]] static inline void v_store_bf16(bf16* p, vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v_narrowed(x));
}
[[maybe_unused]] static inline void v_store_n_bf16(bf16* p, vec x, int n) {
  _mm256_mask_storeu_epi16(p, v_first(n), v_narrowed(x));
}
[[maybe_unused]] static inline void v_store_strided_bf16(bf16* p, std::int64_t stride, vec x, int n) {
  alignas(32) bf16 lane[lanes];
  v_store_bf16(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
