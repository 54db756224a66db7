// Elementary functions of the kernels, in single precision.
typedef float real;

TESSERA_DEVICE real one_if(bool condition) { return condition ? 1.0f : 0.0f; }
TESSERA_DEVICE real one_if_positive(real x) { return one_if(x > 0.0f); }
TESSERA_DEVICE real select_positive(real x, real then, real otherwise) { return x > 0.0f ? then : otherwise; }
/// The second when either is not a number.
TESSERA_DEVICE real larger(real a, real b) { return a > b ? a : b; }
TESSERA_DEVICE real inverse_root(real x) { return 1.0f / sqrtf(x); }

/// (-1)^m sin(x - n pi), for n = m or m + 1/2 near x / pi: as on a CPU, and without the local memory in which CUDA's
/// own reduces large arguments. Within 2e-7 for |x| to 8192, from where on n pi loses digits.
TESSERA_DEVICE real sine_reduced(real x, real m, real n) {
  real r = fmaf(n, -3.140625f, x);
  r = fmaf(n, -9.67502593994140625e-4f, r);
  r = fmaf(n, -1.50995802e-7f, r);
  r = -larger(-1.58f, -larger(-1.58f, r));
  const real square = r * r;
  real p = 2.6057507e-6f;  // (sin(r) - r) / r^3 in r^2
  p = fmaf(p, square, -1.9809590e-4f);
  p = fmaf(p, square, 8.3330661e-3f);
  p = fmaf(p, square, -1.6666660e-1f);
  p = fmaf(p * square, r, r);
  const real half = m * 0.5f, rest = half - rintf(half);  // 0 of an even m, else 1/2 or -1/2
  return p * fmaf(rest * rest, -8.0f, 1.0f);
}
/// sin(x) = (-1)^m sin(x - m pi).
TESSERA_DEVICE real sine(real x) {
  const real m = rintf(x * 0.318309886f);
  return sine_reduced(x, m, m);
}
/// cos(x) = -(-1)^m sin(x - (m + 1/2) pi).
TESSERA_DEVICE real cosine(real x) {
  const real m = rintf(fmaf(x, 0.318309886f, -0.5f));
  return -sine_reduced(x, m, m + 0.5f);
}

/// Of the standard normal distribution at a distance `u` from its middle: exp(-u^2 / 2), and what times that is the
/// tail beyond it, 1 - Phi(u), within 2e-7. A rational function of u, as erfc's in Abramowitz & Stegun 7.1.26, fitted
/// so that it does not cancel: one reciprocal and one exponential, which Phi and its density share.
struct NormalTail {
  real density, tail;
};
TESSERA_DEVICE NormalTail normal_tail(real u) {
  const real t = reciprocal(fmaf(u, 0.31f, 1.0f)) - 0.5f;
  real p = -1.40759533e-1f;
  p = fmaf(p, t, 2.40529213e-1f);
  p = fmaf(p, t, 4.18287238e-1f);
  p = fmaf(p, t, 5.02284931e-1f);
  p = fmaf(p, t, 3.94634751e-1f);
  p = fmaf(p, t, 1.14191165e-1f);
  return {power_of_two(u * -0.72134752f * u), p};
}
/// |x|, but no more than 15, where density and tail are 0 in single precision; not a number stays so.
TESSERA_DEVICE real held_distance(real x) { return -larger(-15.0f, -fabsf(x)); }

/// gelu(x) = x Phi(x) = max(x, 0) - |x| (1 - Phi(|x|)), exact form (Hendrycks & Gimpel 2016). Of -infinity it is 0.
TESSERA_DEVICE real gelu(real x) {
  const real u = held_distance(x);
  const NormalTail normal = normal_tail(u);
  return fmaf(normal.density * -u, normal.tail, larger(x, 0.0f));
}
/// d gelu(x) / dx = Phi(x) + x phi(x): of |x| the one, of -|x| what is left to 1.
TESSERA_DEVICE real gelu_gradient(real x) {
  const real u = held_distance(x);
  const NormalTail normal = normal_tail(u);
  const real left = normal.density * fmaf(u, -0.39894228f, normal.tail);
  return x < 0.0f ? left : 1.0f - left;
}

/// Dropout's factor for an element: 0 where a random word is below `threshold`, else `scale`. Four elements in a row
/// have the four words of Philox4x32-10 (Salmon et al. 2011) of their number over four, the stream (which dropout, of
/// which layer) and the step, keyed by the seed, as on a CPU. `random`: seed and step, two words each, the lower one
/// first.
TESSERA_DEVICE real keep(const std::int32_t* random, std::int64_t stream, std::int64_t element, std::int64_t threshold,
                         real scale) {
  std::uint32_t a = static_cast<std::uint32_t>(element) / 4, b = static_cast<std::uint32_t>(stream);
  std::uint32_t c = static_cast<std::uint32_t>(random[2]), d = static_cast<std::uint32_t>(random[3]);
  std::uint32_t key0 = static_cast<std::uint32_t>(random[0]), key1 = static_cast<std::uint32_t>(random[1]);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53u} * a, right = std::uint64_t{0xCD9E8D57u} * c;
    a = static_cast<std::uint32_t>(right >> 32) ^ b ^ key0;
    b = static_cast<std::uint32_t>(right);
    c = static_cast<std::uint32_t>(left >> 32) ^ d ^ key1;
    d = static_cast<std::uint32_t>(left);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const std::uint32_t word = element & 2 ? element & 1 ? d : c : element & 1 ? b : a;
  return word < static_cast<std::uint64_t>(threshold) ? 0.0f : scale;
}
