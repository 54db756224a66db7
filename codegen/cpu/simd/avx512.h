// Vectors of sixteen single-precision lanes: AVX-512 F, DQ, BW and VL.
typedef float real;
typedef __m512 vec;
[[maybe_unused]] static constexpr int lanes = 16;

// Memory. The _n and _strided forms touch the first n lanes only (0 <= n <= lanes); lanes not loaded are 0.
[[maybe_unused]] static inline __mmask16 v_first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
[[maybe_unused]] static inline vec v_set(real x) { return _mm512_set1_ps(x); }
[[maybe_unused]] static inline vec v_zero() { return _mm512_setzero_ps(); }
[[maybe_unused]] static inline vec v_iota() {
  return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
[[maybe_unused]] static inline vec v_load(const real* p) { return _mm512_loadu_ps(p); }
[[maybe_unused]] static inline vec v_load_n(const real* p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
[[maybe_unused]] static inline vec v_load_strided(const real* p, std::int64_t stride, int n) {
  alignas(64) real lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return _mm512_load_ps(lane);
}
[[maybe_unused]] static inline void v_store(real* p, vec x) { _mm512_storeu_ps(p, x); }
[[maybe_unused]] static inline void v_store_n(real* p, vec x, int n) { _mm512_mask_storeu_ps(p, v_first(n), x); }
[[maybe_unused]] static inline void v_store_strided(real* p, std::int64_t stride, vec x, int n) {
  alignas(64) real lane[lanes];
  _mm512_store_ps(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}

// Arithmetic. v_max and v_min give their second operand when either is not a number.
[[maybe_unused]] static inline vec v_add(vec a, vec b) { return _mm512_add_ps(a, b); }
[[maybe_unused]] static inline vec v_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
[[maybe_unused]] static inline vec v_mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
[[maybe_unused]] static inline vec v_div(vec a, vec b) { return _mm512_div_ps(a, b); }
[[maybe_unused]] static inline vec v_max(vec a, vec b) { return _mm512_max_ps(a, b); }
[[maybe_unused]] static inline vec v_min(vec a, vec b) { return _mm512_min_ps(a, b); }
[[maybe_unused]] static inline vec v_neg(vec a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
[[maybe_unused]] static inline vec v_abs(vec a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
[[maybe_unused]] static inline vec v_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
[[maybe_unused]] static inline vec v_fms(vec a, vec b, vec c) { return _mm512_fmsub_ps(a, b, c); }
[[maybe_unused]] static inline vec v_fnma(vec a, vec b, vec c) { return _mm512_fnmadd_ps(a, b, c); }
[[maybe_unused]] static inline vec v_sqrt(vec a) { return _mm512_sqrt_ps(a); }
[[maybe_unused]] static inline vec v_rsqrt(vec a) { return _mm512_div_ps(_mm512_set1_ps(1), _mm512_sqrt_ps(a)); }
// Of operands with the same number in all lanes: a vector's division keeps the processor busy for longer.
[[maybe_unused]] static inline vec v_div_one(vec a, vec b) {
  return _mm512_broadcastss_ps(_mm_div_ss(_mm512_castps512_ps128(a), _mm512_castps512_ps128(b)));
}
[[maybe_unused]] static inline vec v_rsqrt_one(vec a) {
  const __m128 one = _mm512_castps512_ps128(a);
  return _mm512_broadcastss_ps(_mm_div_ss(_mm_set_ss(1), _mm_sqrt_ss(one)));
}

// Choice. v_equal and v_step give 1 or 0; v_select_less gives x where a < b and y elsewhere.
[[maybe_unused]] static inline vec v_equal(vec a, vec b) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), _mm512_set1_ps(1));
}
[[maybe_unused]] static inline vec v_step(vec a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_GT_OQ), _mm512_set1_ps(1));
}
[[maybe_unused]] static inline vec v_select_less(vec a, vec b, vec x, vec y) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
[[maybe_unused]] static inline vec v_keep_n(vec x, int n, real other) {
  return _mm512_mask_blend_ps(v_first(n), _mm512_set1_ps(other), x);
}

/// The number that all lanes hold.
[[maybe_unused]] static inline real v_one(vec x) { return _mm512_cvtss_f32(x); }

// Across lanes, by halving: lane i meets lane i + 8, then i + 4, then i + 2, then i + 1.
[[maybe_unused]] static inline real v_sum(vec x) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  __m128 quarter = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  quarter = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_movehdup_ps(quarter)));
}
[[maybe_unused]] static inline real v_max_lane(vec x) {
  const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  quarter = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_movehdup_ps(quarter)));
}

// Bits of single precision, for math.h. v_round rounds ties to even; v_scale gives x 2^n, n whole;
// a positive normal x is v_mantissa(x) * 2^v_exponent(x), mantissa in [sqrt(1/2), sqrt(2)).
[[maybe_unused]] static inline vec v_round(vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
[[maybe_unused]] static inline vec v_scale(vec x, vec n) { return _mm512_scalef_ps(x, n); }
[[maybe_unused]] static inline vec v_exponent(vec x) {
  const __m512i from_root_half = _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x3f3504f3));
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(from_root_half, 23));
}
[[maybe_unused]] static inline vec v_mantissa(vec x) {
  const __m512i root_half = _mm512_set1_epi32(0x3f3504f3);
  const __m512i rest =
      _mm512_and_si512(_mm512_sub_epi32(_mm512_castps_si512(x), root_half), _mm512_set1_epi32(0x7fffff));
  return _mm512_castsi512_ps(_mm512_add_epi32(rest, root_half));
}

[[maybe_unused]] static inline __m512i v_word(std::int64_t bits) {
  return _mm512_set1_epi32(static_cast<std::int32_t>(bits));
}
// Philox4x32-10 in every lane: products of 32 by 32 bits, of the even lanes and of the odd ones, put together again.
[[maybe_unused]] static inline __m512i v_high_words(__m512i even, __m512i odd) {
  return _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
}
[[maybe_unused]] static inline __m512i v_low_words(__m512i even, __m512i odd) {
  return _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
}
/// The word of each of the elements `element`, `element + step`, ...
[[maybe_unused]] static __m512i v_random_strided(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                                 std::int64_t step) {
  const __m512i left = v_word(0xD2511F53), right = v_word(0xCD9E8D57);
  const __m512i elements = _mm512_add_epi32(
      v_word(element),
      _mm512_mullo_epi32(v_word(step), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
  __m512i a = _mm512_srli_epi32(elements, 2), b = v_word(stream), c = v_word(random[2]), d = v_word(random[3]);
  std::uint32_t key0 = static_cast<std::uint32_t>(random[0]), key1 = static_cast<std::uint32_t>(random[1]);
  for (int round = 0; round < 10; ++round) {
    const __m512i left_even = _mm512_mul_epu32(a, left), left_odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), left);
    const __m512i right_even = _mm512_mul_epu32(c, right),
                  right_odd = _mm512_mul_epu32(_mm512_srli_epi64(c, 32), right);
    a = _mm512_ternarylogic_epi32(v_high_words(right_even, right_odd), b, v_word(key0), 0x96);
    b = v_low_words(right_even, right_odd);
    c = _mm512_ternarylogic_epi32(v_high_words(left_even, left_odd), d, v_word(key1), 0x96);
    d = v_low_words(left_even, left_odd);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const __mmask16 odd = _mm512_test_epi32_mask(elements, v_word(1)),
                  later = _mm512_test_epi32_mask(elements, v_word(2));
  return _mm512_mask_blend_epi32(later, _mm512_mask_blend_epi32(odd, a, b), _mm512_mask_blend_epi32(odd, c, d));
}
/// The same four words, again and again.
[[maybe_unused]] static inline __m512i v_words(std::uint32_t first, std::uint32_t second, std::uint32_t third,
                                               std::uint32_t fourth) {
  return _mm512_broadcast_i32x4(_mm_setr_epi32(static_cast<std::int32_t>(first), static_cast<std::int32_t>(second),
                                               static_cast<std::int32_t>(third), static_cast<std::int32_t>(fourth)));
}
/// The words of elements in a row, the first of them a multiple of four: a counter's words beside each other.
[[maybe_unused]] static inline __m512i v_random(const std::int32_t* random, std::int64_t stream, std::int64_t element) {
  const __m512i left_and_right = v_words(0xD2511F53, 0, 0xCD9E8D57, 0),
                next_key = v_words(0x9E3779B9, 0, 0xBB67AE85, 0);
  __m512i key = v_words(static_cast<std::uint32_t>(random[0]), 0, static_cast<std::uint32_t>(random[1]), 0);
  __m512i words =
      _mm512_add_epi32(v_words(static_cast<std::uint32_t>(element) / 4, static_cast<std::uint32_t>(stream),
                               static_cast<std::uint32_t>(random[2]), static_cast<std::uint32_t>(random[3])),
                       _mm512_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0));
  for (int round = 0; round < 10; ++round) {
    const __m512i products = _mm512_mul_epu32(words, left_and_right);
    words = _mm512_ternarylogic_epi32(_mm512_shuffle_epi32(products, _MM_PERM_ABCD), _mm512_srli_epi64(words, 32), key,
                                      0x96);
    key = _mm512_add_epi32(key, next_key);
  }
  return words;
}
/// Dropout's factors for elements `element`, `element + step`, ...: 0 where a random word is below `threshold`, else
/// `scale`. Four elements in a row have the four words of Philox4x32-10 (Salmon et al. 2011) of their number over four,
/// the stream (which dropout, of which layer) and the step, keyed by the seed: a factor depends on these alone, so that
/// nothing is stored and every back end draws the same.
[[maybe_unused]] static inline vec v_keep(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                          std::int64_t step, std::int64_t threshold, real scale) {
  const __m512i words = step == 1 && element % 4 == 0 ? v_random(random, stream, element)
                                                      : v_random_strided(random, stream, element, step);
  const __mmask16 kept = threshold >> 32 ? 0 : _mm512_cmpge_epu32_mask(words, v_word(threshold));
  return _mm512_maskz_mov_ps(kept, _mm512_set1_ps(scale));
}
