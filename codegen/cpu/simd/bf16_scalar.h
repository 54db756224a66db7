[[maybe_unused]] static inline bf16 bf16_of(real x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return static_cast<bf16>(bits >> 16 | 0x40);  // still not a number when its lower half is gone
  return static_cast<bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
[[maybe_unused]] static inline real real_of(bf16 h) {
  const std::uint32_t bits = static_cast<std::uint32_t>(h) << 16;
  real x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

[[maybe_unused]] static inline vec v_set_bf16(bf16 x) { return real_of(x); }
[[maybe_unused]] static inline vec v_load_bf16(const bf16* p) { return real_of(*p); }
[[maybe_unused]] static inline vec v_load_n_bf16(const bf16* p, int n) { return n > 0 ? real_of(*p) : real(0); }
[[maybe_unused]] static inline vec v_load_strided_bf16(const bf16* p, std::int64_t, int n) {
  return v_load_n_bf16(p, n);
}
[[maybe_unused]] static inline void v_store_bf16(bf16* p, vec x) { *p = bf16_of(x); }
[[maybe_unused]] static inline void v_store_n_bf16(bf16* p, vec x, int n) {
  if (n > 0) *p = bf16_of(x);
}
[[maybe_unused]] static inline void v_store_strided_bf16(bf16* p, std::int64_t, vec x, int n) {
  v_store_n_bf16(p, x, n);
}
