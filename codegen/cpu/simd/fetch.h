// What lies in far memory is asked for before it is read.
/// One line of memory.
template <class T>
[[maybe_unused]] static inline void v_fetch_line(const T* at) {
#if defined(__GNUC__)
  __builtin_prefetch(at, 0, 2);
#else
  (void)at;
#endif
}
/// Lines in order, which a matrix product is going to go through in strides.
template <class T>
[[maybe_unused]] static inline void v_fetch(const T* first, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
  for (std::int64_t i = 0; i < count; i += line) v_fetch_line(first + i);
}
