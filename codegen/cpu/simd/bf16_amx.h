// Products of bf16 by AMX.
/// To so many products sums are filled up with zeros.
[[maybe_unused]] static constexpr std::int64_t t_filled(std::int64_t depth) { return t_whole(depth); }

/// One step of 32 products for each sum of up to 32 rows and 32 columns.
__attribute__((always_inline)) static inline void t_step(std::int64_t rows, std::int64_t columns, const bf16* left,
                                                         std::int64_t stride, const bf16* panel) {
  _tile_loadd(4, left, stride * 2);
  _tile_loadd(6, panel, 128);
  _tile_dpbf16ps(0, 4, 6);
  if (columns > 16) {
    _tile_loadd(7, panel + 32, 128);
    _tile_dpbf16ps(1, 4, 7);
  }
  if (rows > 16) {
    _tile_loadd(5, left + 16 * stride, stride * 2);
    _tile_dpbf16ps(2, 5, 6);
    if (columns > 16) _tile_dpbf16ps(3, 5, 7);
  }
}
/// Adds products along the whole depth to the sums. `left`: rows `stride` apart. With every step asks for `lines` lines
/// of memory from `ahead` on.
__attribute__((always_inline)) static inline void t_steps(std::int64_t rows, std::int64_t columns, const bf16* left,
                                                          std::int64_t stride, const bf16* panel, std::int64_t depth,
                                                          const bf16* ahead, std::int64_t lines) {
  const std::int64_t whole = depth / t_depth * t_depth;
  t_written();
  for (std::int64_t k = 0; k < whole; k += t_depth, ahead += lines * t_depth) {
    for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(ahead + line * t_depth, 0, 2);
    t_step(rows, columns, left + k, stride, panel + k * t_columns);
  }
  if (depth == whole) return;
  // What lies behind a row is not the product's: it might not even be a number.
  alignas(64) bf16 last[t_rows * t_depth];
  const __mmask32 there = (1u << (depth - whole)) - 1u;
  for (std::int64_t row = 0; row < rows; ++row)
    _mm512_store_si512(last + row * t_depth, _mm512_maskz_loadu_epi16(there, left + row * stride + whole));
  t_written();
  t_step(rows, columns, last, t_depth, panel + whole * t_columns);
}
/// sums[row * 32 + column] of a matrix product; meanwhile the next panel is asked for, in parts: t_steps says how.
__attribute__((always_inline)) static inline void t_product(real* sums, std::int64_t rows, std::int64_t columns,
                                                            const bf16* left, std::int64_t stride, const bf16* panel,
                                                            std::int64_t depth, const bf16* ahead, std::int64_t lines) {
  t_zero();
  t_steps(rows, columns, left, stride, panel, depth, ahead, lines);
  t_store(rows, columns, sums, t_columns);
}

static constexpr bool t_in_place = true;  // whole tiles of sums are loaded and stored where they are
static inline void t_accumulate_whole(bool add, const bf16* left, std::int64_t left_stride, const bf16* panel,
                                      std::int64_t depth, real* to, std::int64_t stride) {
  t_written();
  if (add) {
    _tile_loadd(0, to, stride * 4);
    _tile_loadd(1, to + 16, stride * 4);
    _tile_loadd(2, to + 16 * stride, stride * 4);
    _tile_loadd(3, to + 16 * stride + 16, stride * 4);
  } else {
    t_zero();
  }
  t_steps(t_rows, t_columns, left, left_stride, panel, depth, nullptr, 0);
  t_store(t_rows, t_columns, to, stride);
}
