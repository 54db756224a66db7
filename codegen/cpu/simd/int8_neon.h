// To the nearest, ties to even. What is not a number becomes 0: it makes the scale one.
[[maybe_unused]] static inline void v_store_strided_int8(int8* p, std::int64_t stride, vec x, int n) {
  const int16x4_t shorts = vqmovn_s32(vcvtnq_s32_f32(x));
  std::int8_t lane[8];
  vst1_s8(lane, vqmovn_s16(vcombine_s16(shorts, shorts)));
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) { v_store_strided_int8(p, 1, x, n); }
[[maybe_unused]] static inline void v_store_int8(int8* p, vec x) { v_store_strided_int8(p, 1, x, lanes); }
[[maybe_unused]] static inline void q_store_n(int8* p, vec x, int n) { v_store_strided_int8(p, 1, x, n); }
[[maybe_unused]] static inline vec v_load_int32(const std::int32_t* p) { return vcvtq_f32_s32(vld1q_s32(p)); }

// Four products of a column at a time: by twos in 16 bits, then in words.
typedef int32x4_t ivec;
static constexpr int q_rows = 4, q_across = 4;
static inline ivec q_set(std::int32_t four) { return vdupq_n_s32(four); }
[[maybe_unused]] static inline ivec q_start(const std::int32_t*) { return vdupq_n_s32(0); }
static inline ivec q_load(const int8* p) {
  ivec weights;
  std::memcpy(&weights, p, sizeof weights);
  return weights;
}
[[maybe_unused]] static inline void q_store(std::int32_t* p, ivec sum) { vst1q_s32(p, sum); }
static inline ivec q_add_products(ivec sum, ivec values, ivec weights) {
  const int8x16_t v = vreinterpretq_s8_s32(values), w = vreinterpretq_s8_s32(weights);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(v), vget_low_s8(w)));
  const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(v), vget_high_s8(w)));
  return vaddq_s32(sum, vpaddq_s32(low, high));
}
