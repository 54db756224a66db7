/// Stores so many of one number, `apart` values apart. Not inlined: of stores of a constant compilers unroll hundreds,
/// which Clang takes minutes to merge.
[[gnu::noinline]] static void v_fill(real* p, std::int64_t apart, std::int64_t count, real value) {
  std::int64_t i = 0;
  if (apart == 1)
    for (; i + lanes <= count; i += lanes) v_store(p + i, v_set(value));
  for (; i < count; ++i) p[i * apart] = value;
}
