// To the nearest, ties to even. What is not a number becomes anything: it makes the scale one.
[[maybe_unused]] static inline void q_store_n(int8* p, vec x, int n) {
  _mm512_mask_cvtsepi32_storeu_epi8(p, v_first(n), _mm512_cvtps_epi32(x));
}
[[maybe_unused]] static inline vec v_load_int32(const std::int32_t* p) {
  return _mm512_cvtepi32_ps(_mm512_loadu_si512(p));
}
[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n);
[[maybe_unused]] static inline void v_store_int8(int8* p, vec x) { v_store_n_int8(p, x, lanes); }
[[maybe_unused]] static inline void v_store_strided_int8(int8* p, std::int64_t stride, vec x, int n) {
  int8 lane[lanes];
  v_store_int8(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
