[[maybe_unused]] static inline void q_store_n(int8* p, vec x, int n) {
  const real whole = v_round(x);  // what is not a number makes the scale one
  if (n > 0) *p = whole >= -127 && whole <= 127 ? static_cast<int8>(whole) : int8{0};
}
[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) { q_store_n(p, x, n); }
[[maybe_unused]] static inline void v_store_int8(int8* p, vec x) { q_store_n(p, x, 1); }
[[maybe_unused]] static inline void v_store_strided_int8(int8* p, std::int64_t, vec x, int n) { q_store_n(p, x, n); }
[[maybe_unused]] static inline vec v_load_int32(const std::int32_t* p) { return static_cast<real>(*p); }

// Four products of a column at a time, in words.
typedef std::int32_t ivec;
static constexpr int q_rows = 2, q_across = 4;
static inline ivec q_set(std::int32_t four) { return four; }
[[maybe_unused]] static inline ivec q_start(const std::int32_t*) { return 0; }
static inline ivec q_load(const int8* p) {
  ivec four;
  std::memcpy(&four, p, sizeof four);
  return four;
}
[[maybe_unused]] static inline void q_store(std::int32_t* p, ivec sum) { *p = sum; }
static inline ivec q_add_products(ivec sum, ivec values, ivec weights) {
  std::int8_t v[4], w[4];
  std::memcpy(v, &values, sizeof v);
  std::memcpy(w, &weights, sizeof w);
  return sum + v[0] * w[0] + v[1] * w[1] + v[2] * w[2] + v[3] * w[3];
}
