// What lies in far memory is asked for in order, before a matrix product goes through it in strides.
template <class T>
[[maybe_unused]] static inline void v_fetch(const T* first, std::int64_t count) {
  constexpr std::int64_t line = 64 / sizeof(T);
#if defined(__GNUC__)
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(first + i, 0, 2);
#else
  (void)first, (void)count;
#endif
}
