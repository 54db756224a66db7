// Elementary functions over the v_ names: one text for every instruction set. The single-precision polynomials are
// minimax fits (Remez exchange) of the function named beside them; not-a-number goes in and comes out. Long ones are
// summed up in two parts, of even and of odd powers, which do not wait for each other; the last, largest terms one by
// one, because the two parts cancel.
#if defined(TESSERA_REAL_DOUBLE)
[[maybe_unused]] static inline vec v_exp(vec x) { return std::exp(x); }
[[maybe_unused]] static inline vec v_log(vec x) { return std::log(x); }
[[maybe_unused]] static inline vec v_tanh(vec x) { return std::tanh(x); }
[[maybe_unused]] static inline vec v_erf(vec x) { return std::erf(x); }
[[maybe_unused]] static inline vec v_gelu(vec x) {
  x = v_max(v_set(-40), x);  // where it is 0, so that -infinity gives 0
  return x * 0.5 * std::erfc(-x * 0.70710678118654752);
}
[[maybe_unused]] static inline vec v_gelu_gradient(vec x) {
  x = v_min(v_set(40), v_max(v_set(-40), x));
  return 0.5 * std::erfc(-x * 0.70710678118654752) + x * 0.39894228040143268 * std::exp(-0.5 * x * x);
}
#else
/// exp(x) = 2^n exp(r), |r| <= log(2) / 2. Exactly 0 below -105, infinite above 89, denormal in between where due.
[[maybe_unused]] static inline vec v_exp(vec x) {
  x = v_min(v_set(89.0f), v_max(v_set(-105.0f), x));
  const vec n = v_round(v_mul(x, v_set(1.44269504f)));
  // log(2) in two parts, the first short enough that its product with n is exact.
  const vec r = v_fma(n, v_set(2.12194440e-4f), v_fma(n, v_set(-0.693359375f), x));
  const vec square = v_mul(r, r);
  vec even = v_set(1.394478371e-3f), odd = v_set(1.979022054e-4f);  // (exp(r) - 1 - r) / r^2
  even = v_fma(even, square, v_set(4.166629165e-2f));
  odd = v_fma(odd, square, v_set(8.333497681e-3f));
  even = v_fma(even, square, v_set(5.000000000e-1f));
  odd = v_fma(odd, square, v_set(1.666666567e-1f));
  return v_scale(v_add(v_fma(v_fma(odd, r, even), square, r), v_set(1.0f)), n);
}

/// log(x) = log(m) + e log(2), m in [sqrt(1/2), sqrt(2)). -infinity at 0, not a number below.
[[maybe_unused]] static inline vec v_log(vec x) {
  const vec smallest = v_set(1.17549435e-38f), infinity = v_set(HUGE_VALF);
  const vec scaled = v_select_less(x, smallest, v_mul(x, v_set(8388608.0f)), x);  // a denormal becomes normal
  const vec e = v_add(v_exponent(scaled), v_select_less(x, smallest, v_set(-23.0f), v_zero()));
  const vec f = v_sub(v_mantissa(scaled), v_set(1.0f));
  const vec square = v_mul(f, f);
  vec p = v_set(6.746646762e-2f);  // (log(1 + f) - f + f^2 / 2) / f^3
  p = v_fma(p, f, v_set(-1.167565435e-1f));
  p = v_fma(p, f, v_set(1.188816056e-1f));
  p = v_fma(p, f, v_set(-1.240558848e-1f));
  p = v_fma(p, f, v_set(1.421955228e-1f));
  p = v_fma(p, f, v_set(-1.666799635e-1f));
  p = v_fma(p, f, v_set(2.000211924e-1f));
  p = v_fma(p, f, v_set(-2.500000894e-1f));
  p = v_fma(p, f, v_set(3.333331347e-1f));
  p = v_fma(e, v_set(-2.12194440e-4f), v_mul(v_mul(f, square), p));
  p = v_add(v_fma(v_set(-0.5f), square, p), f);
  p = v_fma(e, v_set(0.693359375f), p);
  p = v_select_less(v_zero(), x, p, v_select_less(x, v_zero(), v_set(NAN), v_neg(infinity)));
  // What is not less than infinity is infinity itself or not a number: x is its own logarithm.
  return v_select_less(x, infinity, p, x);
}

/// tanh(x): odd polynomial below 0.625, 1 - 2 / (exp(2|x|) + 1) from there on.
[[maybe_unused]] static inline vec v_tanh(vec x) {
  const vec size = v_abs(x), square = v_mul(x, x);
  vec p = v_set(-5.717043299e-3f);  // (tanh(x) - x) / x^3 in x^2
  p = v_fma(p, square, v_set(2.065058611e-2f));
  p = v_fma(p, square, v_set(-5.374349654e-2f));
  p = v_fma(p, square, v_set(1.333149076e-1f));
  p = v_fma(p, square, v_set(-3.333328366e-1f));
  p = v_fma(v_mul(p, square), x, x);
  const vec far = v_sub(v_set(1.0f), v_div(v_set(2.0f), v_add(v_exp(v_add(size, size)), v_set(1.0f))));
  return v_select_less(size, v_set(0.625f), p, v_select_less(x, v_zero(), v_neg(far), far));
}

/// erf(x): odd polynomial below 0.92, 1 - exp(polynomial) from there on; 1 in single precision from 4 on.
[[maybe_unused]] static inline vec v_erf(vec x) {
  const vec size = v_min(v_set(4.0f), v_abs(x)), square = v_mul(size, size);
  vec near = v_set(-5.976896500e-4f);  // erf(x) / x - 1 in x^2
  near = v_fma(near, square, v_set(4.990980960e-3f));
  near = v_fma(near, square, v_set(-2.676556818e-2f));
  near = v_fma(near, square, v_set(1.128180251e-1f));
  near = v_fma(near, square, v_set(-3.761249483e-1f));
  near = v_fma(near, square, v_set(1.283791512e-1f));
  near = v_fma(near, x, x);
  vec far = v_set(1.123129823e-5f);  // -log(1 - erf(t)) / t
  far = v_fma(far, size, v_set(-3.228037676e-4f));
  far = v_fma(far, size, v_set(3.642458702e-3f));
  far = v_fma(far, size, v_set(-2.376206219e-2f));
  far = v_fma(far, size, v_set(1.062368751e-1f));
  far = v_fma(far, size, v_set(6.351513267e-1f));
  far = v_fma(far, size, v_set(1.128648520e+0f));
  far = v_sub(v_set(1.0f), v_exp(v_neg(v_mul(far, size))));
  return v_select_less(size, v_set(0.92f), near, v_select_less(x, v_zero(), v_neg(far), far));
}

/// gelu(x) = x Phi(x), exact form (Hendrycks & Gimpel 2016). Phi is 1/2 + x times a polynomial in x^2, within 2e-7, for
/// |x| to 5.35, where it has come to 0 and 1; -infinity gives 0.
[[maybe_unused]] static inline vec v_gelu(vec x) {
  const vec held = v_max(v_set(-5.35f), x), t = v_min(v_set(5.35f), held);
  const vec u = v_fma(v_mul(t, t), v_set(0.06987509876f), v_set(-1.0f)), square = v_mul(u, u);
  vec even = v_set(3.348651517e-04f), odd = v_set(-8.883510600e-04f);  // (Phi(t) - 1/2) / t
  even = v_fma(even, square, v_set(8.006113349e-04f));
  odd = v_fma(odd, square, v_set(-1.144385780e-03f));
  even = v_fma(even, square, v_set(3.392371116e-03f));
  odd = v_fma(odd, square, v_set(-6.272869650e-03f));
  even = v_fma(even, square, v_set(9.238593280e-03f));
  odd = v_fma(odd, square, v_set(-1.358140167e-02f));
  even = v_fma(even, square, v_set(1.929515973e-02f));
  odd = v_fma(odd, square, v_set(-2.553315088e-02f));
  even = v_fma(even, square, v_set(3.210752457e-02f));
  vec p = v_fma(odd, u, even);
  p = v_fma(p, u, v_set(-3.940302879e-02f));
  p = v_fma(p, u, v_set(4.888189957e-02f));
  p = v_fma(p, u, v_set(-6.591891497e-02f));
  p = v_fma(p, u, v_set(1.321490258e-01f));
  return v_mul(held, v_max(v_fma(t, p, v_set(0.5f)), v_zero()));
}

/// d gelu(x) / dx = Phi(x) + x phi(x): 1/2 + x times a polynomial in x^2, within 3e-7, for |x| to 5.63, beyond which it
/// is as good as 0 and 1.
[[maybe_unused]] static inline vec v_gelu_gradient(vec x) {
  const vec t = v_min(v_set(5.63333321f), v_max(v_set(-5.63333321f), x));
  const vec u = v_fma(v_mul(t, t), v_set(0.06302300841f), v_set(-1.0f)), square = v_mul(u, u);
  vec even = v_set(4.181942437e-03f), odd = v_set(-1.593061839e-03f);  // (Phi(t) - 1/2) / t + phi(t)
  even = v_fma(even, square, v_set(1.975648804e-03f));
  odd = v_fma(odd, square, v_set(-2.437137999e-03f));
  even = v_fma(even, square, v_set(2.519198693e-02f));
  odd = v_fma(odd, square, v_set(-1.290747989e-02f));
  even = v_fma(even, square, v_set(4.097849131e-02f));
  odd = v_fma(odd, square, v_set(-3.096184321e-02f));
  even = v_fma(even, square, v_set(6.814377010e-02f));
  odd = v_fma(odd, square, v_set(-5.670175329e-02f));
  vec p = v_fma(odd, u, even);
  p = v_fma(p, u, v_set(-7.222574949e-02f));
  p = v_fma(p, u, v_set(7.040762156e-02f));
  p = v_fma(p, u, v_set(-6.382109970e-02f));
  p = v_fma(p, u, v_set(5.555455759e-02f));
  p = v_fma(p, u, v_set(-5.009558797e-02f));
  p = v_fma(p, u, v_set(5.123053119e-02f));
  p = v_fma(p, u, v_set(-6.381980330e-02f));
  p = v_fma(p, u, v_set(1.256564111e-01f));
  return v_fma(t, p, v_set(0.5f));
}
#endif
