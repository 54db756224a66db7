// A micro-kernel's step along k, of a row of B that is contiguous; its last vector has `tail` lanes (0: all).
/// sum += a * the row of B
template <int tail, int vectors>
[[gnu::always_inline]] static inline void axpy(Accumulators<vectors>& sum, vec a, const real* b) {
  unroll<vectors>([&](std::int64_t j) {
    sum[j] = v_fma(a, v_load_some(b + j * lanes, tail && j + 1 == vectors ? tail : lanes), sum[j]);
  });
}
/// The same of a tile's rows, whose numbers of A lie `apart` from each other.
template <int tail, int rows, int vectors>
[[gnu::always_inline]] static inline void rank_one_update(Accumulators<rows, vectors>& sum, const real* a,
                                                          std::int64_t apart, const real* b) {
  vec x[vectors];
  unroll<vectors>([&](std::int64_t j) { x[j] = v_load_some(b + j * lanes, tail && j + 1 == vectors ? tail : lanes); });
  unroll<rows>([&](std::int64_t i) {
    const vec each = v_set(a[i * apart]);
    unroll<vectors>([&](std::int64_t j) { sum[i][j] = v_fma(each, x[j], sum[i][j]); });
  });
}
