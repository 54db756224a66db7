// Transposed copies: by blocks of as many rows as a vector has lanes.
/// Half of each of two vectors changes places: lanes of `a` whose number has the bit `apart`, and those without it of
/// `b`.
template <int apart, int... lane>
static inline void v_exchange(vec& a, vec& b, std::integer_sequence<int, lane...>) {
  const vec first = __builtin_shufflevector(a, b, (lane & apart ? lanes + lane - apart : lane)...);
  b = __builtin_shufflevector(a, b, (lane & apart ? lanes + lane : lane + apart)...);
  a = first;
}
/// The transpose: lane j of row i becomes lane i of row j.
template <int apart = lanes / 2>
static inline void v_transpose(vec (&row)[lanes]) {
  if constexpr (apart > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i)
      if (!(i & apart)) v_exchange<apart>(row[i], row[i + apart], std::make_integer_sequence<int, lanes>());
    v_transpose<apart / 2>(row);
  }
}
/// to[k * to_row + i] = from[i * from_row + k] for all i below `count` and k below `depth`.
static void v_copy_transposed(const real* from, std::int64_t from_row, real* to, std::int64_t to_row,
                              std::int64_t depth, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    const int some = static_cast<int>(std::min<std::int64_t>(lanes, count - i));
    const std::int64_t whole = depth - depth % lanes;
    for (std::int64_t k = 0; k < whole; k += lanes) {
      vec row[lanes];
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) row[j] = j < some ? v_load(from + (i + j) * from_row + k) : v_zero();
      v_transpose(row);
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) {
        real* const at = to + (k + j) * to_row + i;
        if (some == lanes)
          v_store(at, row[j]);
        else
          v_store_n(at, row[j], some);
      }
    }
    for (std::int64_t k = whole; k < depth; ++k)
      v_store_n(to + k * to_row + i, v_load_strided(from + i * from_row + k, from_row, some), some);
  }
}
