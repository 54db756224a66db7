/// A number as a type, for lambdas of a constant.
template <int n>
struct Constant {};
template <int n>
inline constexpr Constant<n> constant{};

/// Calls f with 0, 1, ... n - 1. Compilers unroll the loop, so that arrays which f indexes become registers.
template <int n, class F>
[[gnu::always_inline]] static inline void unroll(const F& f) {
#pragma GCC unroll 64
  for (std::int64_t i = 0; i < n; ++i) f(i);
}
/// Calls f with all pairs of one of the first m and one of the first n.
template <int m, int n, class F>
[[gnu::always_inline]] static inline void unroll(const F& f) {
  unroll<m>([&](std::int64_t i) { unroll<n>([&](std::int64_t j) { f(i, j); }); });
}
/// The accumulators of a register tile of so many rows and vectors, or of one row of m vectors.
template <int m, int n = 0>
struct Accumulators {
  vec of[m][n];
  [[gnu::always_inline]] Accumulators(vec first) {
    unroll<m, n>([&](std::int64_t i, std::int64_t j) { of[i][j] = first; });
  }
  [[gnu::always_inline]] vec* operator[](std::int64_t i) { return of[i]; }
};
template <int m>
struct Accumulators<m, 0> {
  vec of[m];
  [[gnu::always_inline]] Accumulators(vec first) {
    unroll<m>([&](std::int64_t i) { of[i] = first; });
  }
  [[gnu::always_inline]] vec& operator[](std::int64_t i) { return of[i]; }
};
/// A statistic of so many rows, each row's number in all lanes.
template <int rows>
struct RowStatistic {
  vec of[rows];
  [[gnu::always_inline]] RowStatistic(const real* first) {
    unroll<rows>([&](std::int64_t row) { of[row] = v_set(first[row]); });
  }
  [[gnu::always_inline]] const vec& operator[](std::int64_t row) const { return of[row]; }
};
// Of a tile's vectors, where the last one may have fewer lanes: n is a constant once the loop is unrolled.
[[maybe_unused]] static inline vec v_load_some(const real* p, int n) { return n == lanes ? v_load(p) : v_load_n(p, n); }
[[maybe_unused]] static inline void v_store_some(real* p, vec x, int n) {
  n == lanes ? v_store(p, x) : v_store_n(p, x, n);
}
