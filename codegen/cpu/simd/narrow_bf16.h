// What is not a number stays so; what is smaller than every normal number becomes zero.
[[maybe_unused]] static inline __m256i v_narrowed(vec x) {
  const __m256bh narrow = _mm512_cvtneps_pbh(x);
  __m256i bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return bits;
}
