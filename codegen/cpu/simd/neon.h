// Vectors of four single-precision lanes: NEON of 64-bit Arm.
typedef float real;
typedef float32x4_t vec;
[[maybe_unused]] static constexpr int lanes = 4;

// Memory. The _n and _strided forms touch the first n lanes only (0 <= n <= lanes); lanes not loaded are 0.
[[maybe_unused]] static inline uint32x4_t v_numbers() {
  const uint32x4_t numbers = {0, 1, 2, 3};
  return numbers;
}
[[maybe_unused]] static inline uint32x4_t v_first(int n) {
  return vcltq_u32(v_numbers(), vdupq_n_u32(static_cast<std::uint32_t>(n)));
}
[[maybe_unused]] static inline vec v_set(real x) { return vdupq_n_f32(x); }
[[maybe_unused]] static inline vec v_zero() { return vdupq_n_f32(0); }
[[maybe_unused]] static inline vec v_iota() { return vcvtq_f32_u32(v_numbers()); }
[[maybe_unused]] static inline vec v_load(const real* p) { return vld1q_f32(p); }
[[maybe_unused]] static inline vec v_load_strided(const real* p, std::int64_t stride, int n) {
  alignas(16) real lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return vld1q_f32(lane);
}
[[maybe_unused]] static inline vec v_load_n(const real* p, int n) { return v_load_strided(p, 1, n); }
[[maybe_unused]] static inline void v_store(real* p, vec x) { vst1q_f32(p, x); }
[[maybe_unused]] static inline void v_store_strided(real* p, std::int64_t stride, vec x, int n) {
  alignas(16) real lane[lanes];
  vst1q_f32(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}
[[maybe_unused]] static inline void v_store_n(real* p, vec x, int n) { v_store_strided(p, 1, x, n); }

// Arithmetic. v_max and v_min give their second operand when either is not a number, which the instructions do not.
[[maybe_unused]] static inline vec v_add(vec a, vec b) { return vaddq_f32(a, b); }
[[maybe_unused]] static inline vec v_sub(vec a, vec b) { return vsubq_f32(a, b); }
[[maybe_unused]] static inline vec v_mul(vec a, vec b) { return vmulq_f32(a, b); }
[[maybe_unused]] static inline vec v_div(vec a, vec b) { return vdivq_f32(a, b); }
[[maybe_unused]] static inline vec v_max(vec a, vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
[[maybe_unused]] static inline vec v_min(vec a, vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
[[maybe_unused]] static inline vec v_neg(vec a) { return vnegq_f32(a); }
[[maybe_unused]] static inline vec v_abs(vec a) { return vabsq_f32(a); }
[[maybe_unused]] static inline vec v_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
[[maybe_unused]] static inline vec v_fms(vec a, vec b, vec c) { return vnegq_f32(vfmsq_f32(c, a, b)); }
[[maybe_unused]] static inline vec v_fnma(vec a, vec b, vec c) { return vfmsq_f32(c, a, b); }
[[maybe_unused]] static inline vec v_sqrt(vec a) { return vsqrtq_f32(a); }
[[maybe_unused]] static inline vec v_rsqrt(vec a) { return vdivq_f32(vdupq_n_f32(1), vsqrtq_f32(a)); }
// Of operands with the same number in all lanes: a vector's division keeps the processor busy for longer.
[[maybe_unused]] static inline vec v_div_one(vec a, vec b) {
  return vdupq_lane_f32(vdiv_f32(vget_low_f32(a), vget_low_f32(b)), 0);
}
[[maybe_unused]] static inline vec v_rsqrt_one(vec a) {
  return vdupq_lane_f32(vdiv_f32(vdup_n_f32(1), vsqrt_f32(vget_low_f32(a))), 0);
}

// Choice. v_equal and v_step give 1 or 0; v_select_less gives x where a < b and y elsewhere.
[[maybe_unused]] static inline vec v_where(uint32x4_t mask, vec x) {
  return vreinterpretq_f32_u32(vandq_u32(mask, vreinterpretq_u32_f32(x)));
}
[[maybe_unused]] static inline vec v_equal(vec a, vec b) { return v_where(vceqq_f32(a, b), vdupq_n_f32(1)); }
[[maybe_unused]] static inline vec v_step(vec a) { return v_where(vcgtzq_f32(a), vdupq_n_f32(1)); }
[[maybe_unused]] static inline vec v_select_less(vec a, vec b, vec x, vec y) {
  return vbslq_f32(vcltq_f32(a, b), x, y);
}
[[maybe_unused]] static inline vec v_keep_n(vec x, int n, real other) {
  return vbslq_f32(v_first(n), x, vdupq_n_f32(other));
}

/// The number that all lanes hold.
[[maybe_unused]] static inline real v_one(vec x) { return vgetq_lane_f32(x, 0); }

// Across lanes, by halving: lane i meets lane i + 2, then i + 1.
[[maybe_unused]] static inline real v_sum(vec x) {
  const float32x2_t half = vadd_f32(vget_low_f32(x), vget_high_f32(x));
  return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}
[[maybe_unused]] static inline real v_max_lane(vec x) { return vmaxvq_f32(x); }

// Bits of single precision, for math.h. v_round rounds ties to even; v_pow2i takes -126 to 127, v_scale gives x 2^n for
// whole n from -151 to 128;
// a positive normal x is v_mantissa(x) * 2^v_exponent(x), mantissa in [sqrt(1/2), sqrt(2)).
[[maybe_unused]] static inline vec v_round(vec x) { return vrndnq_f32(x); }
[[maybe_unused]] static inline vec v_pow2i(int32x4_t n) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
[[maybe_unused]] static inline vec v_scale(vec x, vec n) {  // in two steps: n is further than one exponent field
  const int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1);
  return v_mul(v_mul(x, v_pow2i(half)), v_pow2i(vsubq_s32(whole, half)));
}
[[maybe_unused]] static inline vec v_exponent(vec x) {
  const int32x4_t from_root_half = vsubq_s32(vreinterpretq_s32_f32(x), vdupq_n_s32(0x3f3504f3));
  return vcvtq_f32_s32(vshrq_n_s32(from_root_half, 23));
}
[[maybe_unused]] static inline vec v_mantissa(vec x) {
  const int32x4_t root_half = vdupq_n_s32(0x3f3504f3);
  const int32x4_t rest = vandq_s32(vsubq_s32(vreinterpretq_s32_f32(x), root_half), vdupq_n_s32(0x7fffff));
  return vreinterpretq_f32_s32(vaddq_s32(rest, root_half));
}

[[maybe_unused]] static inline uint32x4_t v_word(std::int64_t bits) {
  return vdupq_n_u32(static_cast<std::uint32_t>(bits));
}
// Philox4x32-10 in every lane: products of 32 by 32 bits, of the lower lanes and of the upper ones, put together again.
[[maybe_unused]] static inline uint32x4_t v_high_words(uint64x2_t lower, uint64x2_t upper) {
  return vuzp2q_u32(vreinterpretq_u32_u64(lower), vreinterpretq_u32_u64(upper));
}
[[maybe_unused]] static inline uint32x4_t v_low_words(uint64x2_t lower, uint64x2_t upper) {
  return vuzp1q_u32(vreinterpretq_u32_u64(lower), vreinterpretq_u32_u64(upper));
}
/// The word of each of the elements `element`, `element + step`, ...
[[maybe_unused]] static uint32x4_t v_random_strided(const std::int32_t* random, std::int64_t stream,
                                                    std::int64_t element, std::int64_t step) {
  const uint32x4_t left = v_word(0xD2511F53), right = v_word(0xCD9E8D57);
  const uint32x4_t elements = vmlaq_u32(v_word(element), v_word(step), v_numbers());
  uint32x4_t a = vshrq_n_u32(elements, 2), b = v_word(stream), c = v_word(random[2]), d = v_word(random[3]);
  std::uint32_t key0 = static_cast<std::uint32_t>(random[0]), key1 = static_cast<std::uint32_t>(random[1]);
  for (int round = 0; round < 10; ++round) {
    const uint64x2_t left_lower = vmull_u32(vget_low_u32(a), vget_low_u32(left)), left_upper = vmull_high_u32(a, left);
    const uint64x2_t right_lower = vmull_u32(vget_low_u32(c), vget_low_u32(right)),
                     right_upper = vmull_high_u32(c, right);
    a = veorq_u32(veorq_u32(v_high_words(right_lower, right_upper), b), v_word(key0));
    b = v_low_words(right_lower, right_upper);
    c = veorq_u32(veorq_u32(v_high_words(left_lower, left_upper), d), v_word(key1));
    d = v_low_words(left_lower, left_upper);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const uint32x4_t odd = vtstq_u32(elements, v_word(1)), later = vtstq_u32(elements, v_word(2));
  return vbslq_u32(later, vbslq_u32(odd, d, c), vbslq_u32(odd, b, a));
}
/// The words of four elements in a row, the first of them a multiple of four: a counter's words beside each other.
[[maybe_unused]] static inline uint32x4_t v_random(const std::int32_t* random, std::int64_t stream,
                                                   std::int64_t element) {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(element) / 4, static_cast<std::uint32_t>(stream),
                                    static_cast<std::uint32_t>(random[2]), static_cast<std::uint32_t>(random[3])},
                      keys[4] = {static_cast<std::uint32_t>(random[0]), 0, static_cast<std::uint32_t>(random[1]), 0},
                      next_keys[4] = {0x9E3779B9, 0, 0xBB67AE85, 0}, left_and_right[2] = {0xD2511F53, 0xCD9E8D57};
  const uint32x2_t factors = vld1_u32(left_and_right);
  const uint32x4_t next_key = vld1q_u32(next_keys);
  uint32x4_t words = vld1q_u32(counter), key = vld1q_u32(keys);
  for (int round = 0; round < 10; ++round) {
    const uint32x4_t products = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(vuzp1q_u32(words, words)), factors));
    const uint32x4_t swapped = vrev64q_u32(products),
                     others = vreinterpretq_u32_u64(vshrq_n_u64(vreinterpretq_u64_u32(words), 32));
    words = veorq_u32(veorq_u32(vextq_u32(swapped, swapped, 2), others), key);
    key = vaddq_u32(key, next_key);
  }
  return words;
}
/// Dropout's factors for elements `element`, `element + step`, ...: 0 where a random word is below `threshold`, else
/// `scale`. Four elements in a row have the four words of Philox4x32-10 (Salmon et al. 2011) of their number over four,
/// the stream (which dropout, of which layer) and the step, keyed by the seed: a factor depends on these alone, so that
/// nothing is stored and every back end draws the same.
[[maybe_unused]] static inline vec v_keep(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                          std::int64_t step, std::int64_t threshold, real scale) {
  const uint32x4_t words = step == 1 && element % 4 == 0 ? v_random(random, stream, element)
                                                         : v_random_strided(random, stream, element, step);
  if (threshold >> 32) return v_zero();
  return v_where(vcgeq_u32(words, v_word(threshold)), vdupq_n_f32(scale));
}
