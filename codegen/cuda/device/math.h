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

/// gelu(x) = x Phi(x), exact form (Hendrycks & Gimpel 2016). Held at -15, where it is 0, so that -infinity gives 0.
TESSERA_DEVICE real gelu(real x) {
  x = larger(-15.0f, x);
  return x * 0.5f * (erff(x * 0.70710678f) + 1.0f);
}
/// d gelu(x) / dx = Phi(x) + x phi(x). Held at -15 and 15, where it is 0 and 1.
TESSERA_DEVICE real gelu_gradient(real x) {
  x = -larger(-15.0f, -larger(-15.0f, x));
  return 0.5f * (erff(x * 0.70710678f) + 1.0f) + x * 0.39894228f * expf(x * x * -0.5f);
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
