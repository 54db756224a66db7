// Prefetch of what lies in DRAM. Inlined always: GCC takes a function that only prefetches for one without effects, and
// leaves calls of it out.
/// The line that holds element `at`, which may lie behind the array: then it is asked for in vain.
template <int nearness = 2, class T>
[[gnu::always_inline]] static inline void v_fetch_line(const T* first, std::int64_t at) {
#if defined(__GNUC__)
  const auto address = reinterpret_cast<std::uintptr_t>(first) + static_cast<std::uintptr_t>(at) * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, nearness);
#else
  (void)first, (void)at;
#endif
}
/// The same, to the nearest cache, of so many lines.
template <class T>
[[gnu::always_inline]] static inline void v_fetch_near(const T* first, std::int64_t at, int lines = 1) {
  constexpr std::int64_t line = 64 / sizeof(T);
#pragma GCC unroll 16
  for (int i = 0; i < lines; ++i) v_fetch_line<3>(first, at + i * line);
}
/// The lines of a tile's rows, so many values wide.
template <class T>
[[gnu::always_inline]] static inline void v_fetch_rows(const T* first, std::int64_t rows, std::int64_t stride,
                                                       std::int64_t width) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < width; column += line) v_fetch_line(first, row * stride + column);
}
/// Lines in order, which a matrix product is going to go through in strides; none of what would take up more than half
/// of the L2.
template <class T>
[[gnu::always_inline]] static inline void v_fetch(const T* first, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  if (count * static_cast<std::int64_t>(sizeof(T)) > tessera_l2_bytes() / 2) return;
  for (std::int64_t i = 0; i < count; i += line) v_fetch_line(first, i);
}
