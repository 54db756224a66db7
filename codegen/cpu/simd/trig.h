// Sine and cosine over the v_ names, for files whose kernels have one: one text for every instruction set. The
// single-precision polynomial is a minimax fit (Remez exchange); not-a-number and infinity give not-a-number.
#if defined(TESSERA_REAL_DOUBLE)
[[maybe_unused]] static inline vec v_sin(vec x) { return std::sin(x); }
[[maybe_unused]] static inline vec v_cos(vec x) { return std::cos(x); }
#else
/// (-1)^m sin(x - n pi), for n = m or m + 1/2 near x / pi; within 2e-7 for |x| to 8192, from where on n pi loses
/// digits.
[[maybe_unused]] static inline vec v_sin_reduced(vec x, vec m, vec n) {
  // pi in three parts, the first two short enough that their products with n are exact.
  vec r = v_fma(n, v_set(-3.140625f), x);
  r = v_fma(n, v_set(-9.67502593994140625e-4f), r);
  r = v_fma(n, v_set(-1.50995802e-7f), r);
  r = v_min(v_set(1.58f), v_max(v_set(-1.58f), r));
  const vec square = v_mul(r, r);
  vec p = v_set(2.6057507e-6f);  // (sin(r) - r) / r^3 in r^2
  p = v_fma(p, square, v_set(-1.9809590e-4f));
  p = v_fma(p, square, v_set(8.3330661e-3f));
  p = v_fma(p, square, v_set(-1.6666660e-1f));
  p = v_fma(v_mul(p, square), r, r);
  const vec half = v_mul(m, v_set(0.5f)), rest = v_sub(half, v_round(half));  // 0 of an even m, else 1/2 or -1/2
  return v_mul(p, v_fma(v_mul(rest, rest), v_set(-8.0f), v_set(1.0f)));
}

/// sin(x) = (-1)^m sin(x - m pi).
[[maybe_unused]] static inline vec v_sin(vec x) {
  const vec m = v_round(v_mul(x, v_set(0.318309886f)));
  return v_sin_reduced(x, m, m);
}

/// cos(x) = -(-1)^m sin(x - (m + 1/2) pi).
[[maybe_unused]] static inline vec v_cos(vec x) {
  const vec m = v_round(v_fma(x, v_set(0.318309886f), v_set(-0.5f)));
  return v_neg(v_sin_reduced(x, m, v_add(m, v_set(0.5f))));
}
#endif
