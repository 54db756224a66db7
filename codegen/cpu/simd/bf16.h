// bf16: the upper half of a single-precision number, rounded to nearest, ties to even.
#if defined(__GNUC__)
typedef std::uint16_t __attribute__((may_alias)) bf16;  // it lies in memory that holds floats at other times
#else
typedef std::uint16_t bf16;
#endif
[[maybe_unused]] static inline bf16* bf16_at(real* p) { return reinterpret_cast<bf16*>(p); }
[[maybe_unused]] static inline const bf16* bf16_at(const real* p) { return reinterpret_cast<const bf16*>(p); }
[[maybe_unused]] static inline real real_at(const std::uint16_t* p) {
  std::uint16_t upper;
  std::memcpy(&upper, p, sizeof upper);
  const std::uint32_t bits = static_cast<std::uint32_t>(upper) << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
