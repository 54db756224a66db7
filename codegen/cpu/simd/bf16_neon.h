// What is not a number stays so, also when its lower half is gone.
[[maybe_unused]] static inline uint16x4_t v_narrowed(vec x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}

[[maybe_unused]] static inline vec v_set_bf16(bf16 x) {
  return vreinterpretq_f32_u32(vdupq_n_u32(static_cast<std::uint32_t>(x) << 16));
}
[[maybe_unused]] static inline vec v_load_bf16(const bf16* p) {
  uint16x4_t narrow;
  std::memcpy(&narrow, p, sizeof narrow);
  return vreinterpretq_f32_u32(vshll_n_u16(narrow, 16));
}
[[maybe_unused]] static inline vec v_load_strided_bf16(const bf16* p, std::int64_t stride, int n) {
  bf16 lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return v_load_bf16(lane);
}
[[maybe_unused]] static inline vec v_load_n_bf16(const bf16* p, int n) { return v_load_strided_bf16(p, 1, n); }
[[maybe_unused]] static inline void v_store_bf16(bf16* p, vec x) {
  const uint16x4_t narrow = v_narrowed(x);
  std::memcpy(p, &narrow, sizeof narrow);
}
[[maybe_unused]] static inline void v_store_strided_bf16(bf16* p, std::int64_t stride, vec x, int n) {
  bf16 lane[lanes];
  v_store_bf16(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
[[maybe_unused]] static inline void v_store_n_bf16(bf16* p, vec x, int n) { v_store_strided_bf16(p, 1, x, n); }
