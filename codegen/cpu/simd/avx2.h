// Vectors of eight single-precision lanes: AVX2 with FMA.
typedef float real;
typedef __m256 vec;
[[maybe_unused]] static constexpr int lanes = 8;

// Memory. The _n and _strided forms touch the first n lanes only (0 <= n <= lanes); lanes not loaded are 0.
[[maybe_unused]] static inline __m256i v_first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
[[maybe_unused]] static inline vec v_set(real x) { return _mm256_set1_ps(x); }
[[maybe_unused]] static inline vec v_zero() { return _mm256_setzero_ps(); }
[[maybe_unused]] static inline vec v_iota() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }
[[maybe_unused]] static inline vec v_load(const real* p) { return _mm256_loadu_ps(p); }
[[maybe_unused]] static inline vec v_load_n(const real* p, int n) { return _mm256_maskload_ps(p, v_first(n)); }
[[maybe_unused]] static inline vec v_load_strided(const real* p, std::int64_t stride, int n) {
  alignas(32) real lane[lanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i * stride];
  return _mm256_load_ps(lane);
}
[[maybe_unused]] static inline void v_store(real* p, vec x) { _mm256_storeu_ps(p, x); }
// In halves: AMD's masked stores take longer than a dozen instructions.
[[maybe_unused]] static inline void v_store_n(real* p, vec x, int n) {
  if (n == lanes) return _mm256_storeu_ps(p, x);
  __m128 half = _mm256_castps256_ps128(x);
  if (n & 4) {
    _mm_storeu_ps(p, half);
    half = _mm256_extractf128_ps(x, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(p), half);
    half = _mm_movehl_ps(half, half);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, half);
}
[[maybe_unused]] static inline void v_store_strided(real* p, std::int64_t stride, vec x, int n) {
  alignas(32) real lane[lanes];
  _mm256_store_ps(lane, x);
  for (int i = 0; i < n; ++i) p[i * stride] = lane[i];
}

// Arithmetic. v_max and v_min give their second operand when either is not a number.
[[maybe_unused]] static inline vec v_add(vec a, vec b) { return _mm256_add_ps(a, b); }
[[maybe_unused]] static inline vec v_sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
[[maybe_unused]] static inline vec v_mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
[[maybe_unused]] static inline vec v_div(vec a, vec b) { return _mm256_div_ps(a, b); }
[[maybe_unused]] static inline vec v_max(vec a, vec b) { return _mm256_max_ps(a, b); }
[[maybe_unused]] static inline vec v_min(vec a, vec b) { return _mm256_min_ps(a, b); }
[[maybe_unused]] static inline vec v_neg(vec a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
[[maybe_unused]] static inline vec v_abs(vec a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
[[maybe_unused]] static inline vec v_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
[[maybe_unused]] static inline vec v_fms(vec a, vec b, vec c) { return _mm256_fmsub_ps(a, b, c); }
[[maybe_unused]] static inline vec v_fnma(vec a, vec b, vec c) { return _mm256_fnmadd_ps(a, b, c); }
[[maybe_unused]] static inline vec v_sqrt(vec a) { return _mm256_sqrt_ps(a); }
[[maybe_unused]] static inline vec v_rsqrt(vec a) { return _mm256_div_ps(_mm256_set1_ps(1), _mm256_sqrt_ps(a)); }
// Of operands with the same number in all lanes: a vector's division keeps the processor busy for longer.
[[maybe_unused]] static inline vec v_div_one(vec a, vec b) {
  return _mm256_broadcastss_ps(_mm_div_ss(_mm256_castps256_ps128(a), _mm256_castps256_ps128(b)));
}
[[maybe_unused]] static inline vec v_rsqrt_one(vec a) {
  const __m128 one = _mm256_castps256_ps128(a);
  return _mm256_broadcastss_ps(_mm_div_ss(_mm_set_ss(1), _mm_sqrt_ss(one)));
}

// Choice. v_equal and v_step give 1 or 0; v_select_less gives x where a < b and y elsewhere.
[[maybe_unused]] static inline vec v_equal(vec a, vec b) {
  return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), _mm256_set1_ps(1));
}
[[maybe_unused]] static inline vec v_step(vec a) {
  return _mm256_and_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_GT_OQ), _mm256_set1_ps(1));
}
[[maybe_unused]] static inline vec v_select_less(vec a, vec b, vec x, vec y) {
  return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
[[maybe_unused]] static inline vec v_keep_n(vec x, int n, real other) {
  return _mm256_blendv_ps(_mm256_set1_ps(other), x, _mm256_castsi256_ps(v_first(n)));
}

/// The number that all lanes hold.
[[maybe_unused]] static inline real v_one(vec x) { return _mm256_cvtss_f32(x); }

// Across lanes, by halving: lane i meets lane i + 4, then i + 2, then i + 1.
[[maybe_unused]] static inline real v_sum(vec x) {
  __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
[[maybe_unused]] static inline real v_max_lane(vec x) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

// Bits of single precision, for math.h. v_round rounds ties to even; v_pow2i takes -126 to 127, v_scale gives x 2^n for
// whole n from -151 to 128;
// a positive normal x is v_mantissa(x) * 2^v_exponent(x), mantissa in [sqrt(1/2), sqrt(2)).
[[maybe_unused]] static inline vec v_round(vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
[[maybe_unused]] static inline vec v_pow2i(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
[[maybe_unused]] static inline vec v_scale(vec x, vec n) {  // in two steps: n is further than one exponent field
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  return v_mul(v_mul(x, v_pow2i(half)), v_pow2i(_mm256_sub_epi32(whole, half)));
}
[[maybe_unused]] static inline vec v_exponent(vec x) {
  const __m256i from_root_half = _mm256_sub_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(0x3f3504f3));
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(from_root_half, 23));
}
[[maybe_unused]] static inline vec v_mantissa(vec x) {
  const __m256i root_half = _mm256_set1_epi32(0x3f3504f3);
  const __m256i rest =
      _mm256_and_si256(_mm256_sub_epi32(_mm256_castps_si256(x), root_half), _mm256_set1_epi32(0x7fffff));
  return _mm256_castsi256_ps(_mm256_add_epi32(rest, root_half));
}

[[maybe_unused]] static inline __m256i v_word(std::int64_t bits) {
  return _mm256_set1_epi32(static_cast<std::int32_t>(bits));
}
// Philox4x32-10 in every lane: products of 32 by 32 bits, of the even lanes and of the odd ones, put together again.
[[maybe_unused]] static inline __m256i v_high_words(__m256i even, __m256i odd) {
  return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}
[[maybe_unused]] static inline __m256i v_low_words(__m256i even, __m256i odd) {
  return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
[[maybe_unused]] static inline __m256i v_either(__m256i x, __m256i y, __m256i second) {  // by its signs
  return _mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(x), _mm256_castsi256_ps(y), _mm256_castsi256_ps(second)));
}
/// The word of each of the elements `element`, `element + step`, ...
[[maybe_unused]] static __m256i v_random_strided(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                                 std::int64_t step) {
  const __m256i left = v_word(0xD2511F53), right = v_word(0xCD9E8D57);
  const __m256i elements =
      _mm256_add_epi32(v_word(element), _mm256_mullo_epi32(v_word(step), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
  __m256i a = _mm256_srli_epi32(elements, 2), b = v_word(stream), c = v_word(random[2]), d = v_word(random[3]);
  std::uint32_t key0 = static_cast<std::uint32_t>(random[0]), key1 = static_cast<std::uint32_t>(random[1]);
  for (int round = 0; round < 10; ++round) {
    const __m256i left_even = _mm256_mul_epu32(a, left), left_odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), left);
    const __m256i right_even = _mm256_mul_epu32(c, right),
                  right_odd = _mm256_mul_epu32(_mm256_srli_epi64(c, 32), right);
    a = _mm256_xor_si256(_mm256_xor_si256(v_high_words(right_even, right_odd), b), v_word(key0));
    b = v_low_words(right_even, right_odd);
    c = _mm256_xor_si256(_mm256_xor_si256(v_high_words(left_even, left_odd), d), v_word(key1));
    d = v_low_words(left_even, left_odd);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const __m256i odd = _mm256_slli_epi32(elements, 31), later = _mm256_slli_epi32(elements, 30);  // in the sign
  return v_either(v_either(a, b, odd), v_either(c, d, odd), later);
}
/// The same four words, again and again.
[[maybe_unused]] static inline __m256i v_words(std::uint32_t first, std::uint32_t second, std::uint32_t third,
                                               std::uint32_t fourth) {
  return _mm256_broadcastsi128_si256(_mm_setr_epi32(static_cast<std::int32_t>(first), static_cast<std::int32_t>(second),
                                                    static_cast<std::int32_t>(third),
                                                    static_cast<std::int32_t>(fourth)));
}
/// The words of elements in a row, the first of them a multiple of four: a counter's words beside each other.
[[maybe_unused]] static inline __m256i v_random(const std::int32_t* random, std::int64_t stream, std::int64_t element) {
  const __m256i left_and_right = v_words(0xD2511F53, 0, 0xCD9E8D57, 0),
                next_key = v_words(0x9E3779B9, 0, 0xBB67AE85, 0);
  __m256i key = v_words(static_cast<std::uint32_t>(random[0]), 0, static_cast<std::uint32_t>(random[1]), 0);
  __m256i words =
      _mm256_add_epi32(v_words(static_cast<std::uint32_t>(element) / 4, static_cast<std::uint32_t>(stream),
                               static_cast<std::uint32_t>(random[2]), static_cast<std::uint32_t>(random[3])),
                       _mm256_setr_epi32(0, 0, 0, 0, 1, 0, 0, 0));
  for (int round = 0; round < 10; ++round) {
    const __m256i products = _mm256_mul_epu32(words, left_and_right);
    words = _mm256_xor_si256(_mm256_xor_si256(_mm256_shuffle_epi32(products, 0x1B), _mm256_srli_epi64(words, 32)), key);
    key = _mm256_add_epi32(key, next_key);
  }
  return words;
}
/// Dropout's factors for elements `element`, `element + step`, ...: 0 where a random word is below `threshold`, else
/// `scale`. Four elements in a row have the four words of Philox4x32-10 (Salmon et al. 2011) of their number over four,
/// the stream (which dropout, of which layer) and the step, keyed by the seed: a factor depends on these alone, so that
/// nothing is stored and every back end draws the same.
[[maybe_unused]] static inline vec v_keep(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                          std::int64_t step, std::int64_t threshold, real scale) {
  const __m256i words = step == 1 && element % 4 == 0 ? v_random(random, stream, element)
                                                      : v_random_strided(random, stream, element, step);
  if (threshold >> 32) return v_zero();
  const __m256i dropped = _mm256_andnot_si256(_mm256_cmpeq_epi32(words, v_word(threshold)),
                                              _mm256_cmpeq_epi32(_mm256_min_epu32(words, v_word(threshold)), words));
  return _mm256_andnot_ps(_mm256_castsi256_ps(dropped), _mm256_set1_ps(scale));
}
