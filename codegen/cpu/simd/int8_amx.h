[[maybe_unused]] static inline void v_store_n_int8(int8* p, vec x, int n) { q_store_n(p, x, n); }

/// sums[row * 32 + column] of a matrix product. With every step of 64 products asks for `lines` lines of memory from
/// `ahead` on: of the next panel.
__attribute__((always_inline)) static inline void t_product(std::int32_t* sums, std::int64_t rows, std::int64_t columns,
                                                            const int8* left, std::int64_t stride, const int8* panel,
                                                            std::int64_t depth, const int8* ahead, std::int64_t lines) {
  t_zero();
  t_written();
  for (std::int64_t k = 0; k < depth; k += q_depth, panel += q_depth * q_columns, ahead += lines * 64) {
    for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(ahead + line * 64, 0, 2);
    _tile_loadd(4, left + k, stride);
    _tile_loadd(6, panel, 4 * q_columns);
    _tile_dpbssd(0, 4, 6);
    if (columns > 16) {
      _tile_loadd(7, panel + 64, 4 * q_columns);
      _tile_dpbssd(1, 4, 7);
    }
    if (rows > 16) {
      _tile_loadd(5, left + 16 * stride + k, stride);
      _tile_dpbssd(2, 5, 6);
      if (columns > 16) _tile_dpbssd(3, 5, 7);
    }
  }
  t_store(rows, columns, sums, q_columns);
}
