// Products by vdpbf16ps: each lane adds two products of bf16 to a sum.
/// To so many products sums are filled up with zeros.
[[maybe_unused]] static constexpr std::int64_t t_filled(std::int64_t depth) { return depth; }

/// Sums of so many rows and 32 columns. With every 32 products of a sum asks for `lines` lines of memory from `ahead`
/// on.
template <int rows>
static inline void t_dot(real* sums, const bf16* left, std::int64_t stride, const bf16* panel, std::int64_t depth,
                         const bf16* ahead, std::int64_t lines) {
  vec sum[rows][2];
  for (int row = 0; row < rows; ++row) sum[row][0] = sum[row][1] = v_zero();
  const auto step = [&](const auto& pair) {
    const __m512bh near = (__m512bh)_mm512_loadu_si512(panel), far = (__m512bh)_mm512_loadu_si512(panel + 32);
    for (int row = 0; row < rows; ++row) {
      const __m512bh two = (__m512bh)_mm512_set1_epi32(pair(left + row * stride));
      sum[row][0] = _mm512_dpbf16_ps(sum[row][0], two, near);
      sum[row][1] = _mm512_dpbf16_ps(sum[row][1], two, far);
    }
    panel += 64;
  };
  std::int64_t k = 0;
  for (; k + 1 < depth; k += 2) {
    if (k % t_depth == 0) {
      for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(ahead + line * t_depth, 0, 2);
      ahead += lines * t_depth;
    }
    step([&](const bf16* from) {
      std::int32_t two;
      std::memcpy(&two, from + k, sizeof two);
      return two;
    });
  }
  // What lies behind a row is not the product's: it might not even be a number.
  if (k < depth) step([&](const bf16* from) { return static_cast<std::int32_t>(from[k]); });
  for (int row = 0; row < rows; ++row) {
    v_store(sums + row * t_columns, sum[row][0]);
    v_store(sums + row * t_columns + lanes, sum[row][1]);
  }
}
/// The same of at most 12: sums that the registers hold, with the factors.
template <int most = 12>
static inline void t_dots(std::int64_t rows, real* sums, const bf16* left, std::int64_t stride, const bf16* panel,
                          std::int64_t depth, const bf16* ahead, std::int64_t lines) {
  if (rows == most)
    t_dot<most>(sums, left, stride, panel, depth, ahead, lines);
  else if constexpr (most > 1)
    t_dots<most - 1>(rows, sums, left, stride, panel, depth, ahead, lines);
}
/// sums[row * 32 + column] of a matrix product; the first rows ask for the next panel: t_dot says how.
static inline void t_product(real* sums, std::int64_t rows, std::int64_t, const bf16* left, std::int64_t stride,
                             const bf16* panel, std::int64_t depth, const bf16* ahead, std::int64_t lines) {
  for (std::int64_t row = 0; row < rows; row += 12)
    t_dots(std::min<std::int64_t>(rows - row, 12), sums + row * t_columns, left + row * stride, stride, panel, depth,
           ahead, row ? 0 : lines);
}

static constexpr bool t_in_place = false;
static inline void t_accumulate_whole(bool, const bf16*, std::int64_t, const bf16*, std::int64_t, real*, std::int64_t) {
}
