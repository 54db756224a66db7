// vpdpbusd takes left factors without a sign: 128 is added to each, and 128 times a column's sum is taken off again.
[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) {
  const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x));
  _mm_mask_storeu_epi8(p, v_first(n), _mm_xor_si128(bytes, _mm_set1_epi8(-128)));
}

// Four products of a column at a time.
typedef __m512i ivec;
static constexpr int q_rows = 8, q_across = 2;
static inline ivec q_set(std::int32_t four) { return _mm512_set1_epi32(four); }
[[maybe_unused]] static inline ivec q_start(const std::int32_t* of_columns) {
  return _mm512_slli_epi32(_mm512_sub_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(of_columns)), 7);
}
static inline ivec q_load(const int8* p) { return _mm512_loadu_si512(p); }
[[maybe_unused]] static inline void q_store(std::int32_t* p, ivec sum) { _mm512_storeu_si512(p, sum); }
static inline ivec q_add_products(ivec sum, ivec values, ivec weights) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(values), "v"(weights));  // by GCC's intrinsic every sum is copied
  return sum;
}
