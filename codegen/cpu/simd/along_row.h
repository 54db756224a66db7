/// Calls f with each vector of a row of n values: where it begins, which of so many interleaved accumulators takes it
/// (so that one addition need not wait for another), and its lanes, a constant once f is inlined.
template <int n, int ways, class F>
[[gnu::always_inline]] static inline void along_row(const F& f) {
  constexpr std::int64_t turn = ways * lanes, turns = n / turn, whole = n / lanes * lanes;
  constexpr std::int64_t rest = turns > 1 ? turns * turn : 0;  // a single turn is no loop
  for (std::int64_t i = 0; i < rest; i += turn) unroll<ways>([&](std::int64_t way) { f(i + way * lanes, way, lanes); });
  if constexpr (rest < whole)
    unroll<(whole - rest) / lanes>([&](std::int64_t i) { f(rest + i * lanes, i % ways, lanes); });
  if constexpr (whole < n) f(whole, 0, n - static_cast<int>(whole));
}
// Of its last vector, with `other`, which changes nothing, in the lanes that are not in use.
[[maybe_unused]] static inline vec v_keep_some(vec x, int n, real other) {
  return n == lanes ? x : v_keep_n(x, n, other);
}
[[maybe_unused]] static inline vec v_fma_some(vec a, vec b, vec c, int n) {
  return n == lanes ? v_fma(a, b, c) : v_add(c, v_keep_n(v_mul(a, b), n, 0));
}
