// Portable vectors of one lane: the oracle that the other instruction sets are compared with.
#if defined(TESSERA_REAL_DOUBLE)
typedef double real;
#else
typedef float real;
#endif
typedef real vec;
[[maybe_unused]] static constexpr int lanes = 1;

// Memory. The _n and _strided forms touch the first n lanes only (0 <= n <= lanes); lanes not loaded are 0.
[[maybe_unused]] static inline vec v_set(real x) { return x; }
[[maybe_unused]] static inline vec v_zero() { return 0; }
[[maybe_unused]] static inline vec v_iota() { return 0; }
[[maybe_unused]] static inline vec v_load(const real* p) { return *p; }
[[maybe_unused]] static inline vec v_load_n(const real* p, int n) { return n > 0 ? *p : real(0); }
[[maybe_unused]] static inline vec v_load_strided(const real* p, std::int64_t, int n) { return v_load_n(p, n); }
[[maybe_unused]] static inline void v_store(real* p, vec x) { *p = x; }
[[maybe_unused]] static inline void v_store_n(real* p, vec x, int n) {
  if (n > 0) *p = x;
}
[[maybe_unused]] static inline void v_store_strided(real* p, std::int64_t, vec x, int n) { v_store_n(p, x, n); }

// Arithmetic. v_max and v_min give their second operand when either is not a number.
[[maybe_unused]] static inline vec v_add(vec a, vec b) { return a + b; }
[[maybe_unused]] static inline vec v_sub(vec a, vec b) { return a - b; }
[[maybe_unused]] static inline vec v_mul(vec a, vec b) { return a * b; }
[[maybe_unused]] static inline vec v_div(vec a, vec b) { return a / b; }
[[maybe_unused]] static inline vec v_max(vec a, vec b) { return a > b ? a : b; }
[[maybe_unused]] static inline vec v_min(vec a, vec b) { return a < b ? a : b; }
[[maybe_unused]] static inline vec v_neg(vec a) { return -a; }
[[maybe_unused]] static inline vec v_abs(vec a) { return std::fabs(a); }
[[maybe_unused]] static inline vec v_fma(vec a, vec b, vec c) { return a * b + c; }
[[maybe_unused]] static inline vec v_fms(vec a, vec b, vec c) { return a * b - c; }
[[maybe_unused]] static inline vec v_fnma(vec a, vec b, vec c) { return c - a * b; }
[[maybe_unused]] static inline vec v_sqrt(vec a) { return std::sqrt(a); }
[[maybe_unused]] static inline vec v_rsqrt(vec a) { return real(1) / std::sqrt(a); }
[[maybe_unused]] static inline vec v_div_one(vec a, vec b) { return v_div(a, b); }
[[maybe_unused]] static inline vec v_rsqrt_one(vec a) { return v_rsqrt(a); }

// Choice. v_equal and v_step give 1 or 0; v_select_less gives x where a < b and y elsewhere.
[[maybe_unused]] static inline vec v_equal(vec a, vec b) { return a == b ? real(1) : real(0); }
[[maybe_unused]] static inline vec v_step(vec a) { return a > 0 ? real(1) : real(0); }
[[maybe_unused]] static inline vec v_select_less(vec a, vec b, vec x, vec y) { return a < b ? x : y; }
[[maybe_unused]] static inline vec v_keep_n(vec x, int n, real other) { return n > 0 ? x : other; }

/// The number that all lanes hold.
[[maybe_unused]] static inline real v_one(vec x) { return x; }

// Across lanes.
[[maybe_unused]] static inline real v_sum(vec x) { return x; }
[[maybe_unused]] static inline real v_max_lane(vec x) { return x; }

#if !defined(TESSERA_REAL_DOUBLE)
// Bits of single precision, for math.h. v_round is exact for |x| < 2^22 and rounds ties to even; v_pow2i takes whole
// numbers from -126 to 127, v_scale gives x 2^n for n from -151 to 128; a positive normal x is
// v_mantissa(x) * 2^v_exponent(x), mantissa in [sqrt(1/2), sqrt(2)).
[[maybe_unused]] static inline vec v_round(vec x) {
  const float shift = 12582912.0f;  // 1.5 * 2^23: adding it leaves no bits for a fraction
  return (x + shift) - shift;
}
[[maybe_unused]] static inline vec v_pow2i(vec x) {
  const float shifted = x + 12583039.0f;  // 1.5 * 2^23 + 127: the lowest bits are now the exponent field
  std::uint32_t bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits <<= 23;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
[[maybe_unused]] static inline vec v_scale(vec x, vec n) {  // in two steps: n is further than one exponent field
  const vec half = v_round(v_mul(n, v_set(0.5f)));
  return v_mul(v_mul(x, v_pow2i(half)), v_pow2i(v_sub(n, half)));
}
[[maybe_unused]] static inline vec v_exponent(vec x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<float>(static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23);
}
[[maybe_unused]] static inline vec v_mantissa(vec x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = ((bits - 0x3f3504f3u) & 0x7fffffu) + 0x3f3504f3u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

/// Dropout's factors for elements `element`, `element + step`, ...: 0 where a random word is below `threshold`, else
/// `scale`. Four elements in a row have the four words of Philox4x32-10 (Salmon et al. 2011) of their number over four,
/// the stream (which dropout, of which layer) and the step, keyed by the seed: a factor depends on these alone, so that
/// nothing is stored and every back end draws the same.
[[maybe_unused]] static inline vec v_keep(const std::int32_t* random, std::int64_t stream, std::int64_t element,
                                          std::int64_t step, std::int64_t threshold, real scale) {
  (void)step;
  std::uint32_t a = static_cast<std::uint32_t>(element) / 4, b = static_cast<std::uint32_t>(stream);
  std::uint32_t c = static_cast<std::uint32_t>(random[2]), d = static_cast<std::uint32_t>(random[3]);
  std::uint32_t key0 = static_cast<std::uint32_t>(random[0]), key1 = static_cast<std::uint32_t>(random[1]);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53u} * a, right = std::uint64_t{0xCD9E8D57u} * c;
    a = static_cast<std::uint32_t>(right >> 32) ^ b ^ key0;
    b = static_cast<std::uint32_t>(right);
    c = static_cast<std::uint32_t>(left >> 32) ^ d ^ key1;
    d = static_cast<std::uint32_t>(left);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const std::uint32_t words[4] = {a, b, c, d};
  return words[element & 3] < static_cast<std::uint64_t>(threshold) ? real(0) : scale;
}
