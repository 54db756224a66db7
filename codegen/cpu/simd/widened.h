/// So many steps along k are widened at once: a tile's are in L1 when they are read.
static constexpr std::int64_t widened = 64;
/// Calls f for each step along k of a tile of so many rows of A, whose numbers of bf16 lie next to each other and whose
/// rows lie `apart`: with the rows' numbers in single precision, `widened` from each other, and with the step's number.
/// Widening a number each time that it is multiplied would take longer than the multiplications.
template <int rows, std::int64_t apart, std::int64_t depth, class F>
[[gnu::always_inline]] static inline void each_widened(const bf16* a, const F& f) {
  alignas(64) real left[rows * widened];
  for (std::int64_t begin = 0; begin < depth; begin += widened) {
    const std::int64_t steps = std::min(widened, depth - begin), whole = steps / lanes * lanes;
    for (std::int64_t row = 0; row < rows; ++row) {
      const bf16* const from = a + row * apart + begin;
      real* const to = left + row * widened;
      for (std::int64_t k = 0; k < whole; k += lanes) v_store(to + k, v_load_bf16(from + k));
      for (std::int64_t k = whole; k < steps; ++k) to[k] = real_at(from + k);
    }
    for (std::int64_t k = 0; k < steps; ++k) f(left + k, begin + k);
  }
}
/// Widens B for so many steps along k, which lie `apart`: `width` numbers of each, of whole vectors.
template <std::int64_t width, std::int64_t depth>
[[maybe_unused]] static inline void widen_panel(real* panel, const bf16* b, std::int64_t apart) {
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t column = 0; column < width; column += lanes)
      v_store(panel + k * width + column, v_load_bf16(b + k * apart + column));
}
