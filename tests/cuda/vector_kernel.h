/// Eight numbers a thread, copied as they are, as bf16, and those as bf16 again.
inline __global__ void copy_vectors(const float* from, float* to, bf16* rounded_to, bf16* back) {
  const int at = thread_x() * 8;
  real x[8], y[8];
  load_vector(x, from + at);
  store_vector(to + at, x);
  for (int half = 0; half < 8; half += 4) {
    real four[4];
    unroll<4>([&](int lane) { four[lane] = x[half + lane]; });
    store_vector(rounded_to + at + half, four);
  }
  load_vector(y, rounded_to + at);
  store_vector(back + at, y);
}
