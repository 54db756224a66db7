/// Stores so many of one number, `apart` values apart. Not inlined: of stores of a constant compilers unroll hundreds,
/// which Clang takes minutes to merge.
[[gnu::noinline]] static void v_fill(real* p, std::int64_t apart, std::int64_t count, real value) {
  const std::int64_t whole = apart == 1 ? count / lanes * lanes : 0;
  for (std::int64_t i = 0; i < whole; i += lanes) v_store(p + i, v_set(value));
  for (std::int64_t i = whole; i < count; ++i) p[i * apart] = value;
}
