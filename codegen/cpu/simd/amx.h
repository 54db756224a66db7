// Products by AMX: tiles of 16 rows of 64 bytes.
// GCC's intrinsics do not say that they read memory: what has been written must be there before they do.
__attribute__((always_inline)) static inline void t_written() { __asm__ volatile("" : : : "memory"); }

/// Tiles for products of so many rows, at most 32: 0 to 3 hold sums, 4 and 5 left factors, 6 and 7 right ones.
static inline void t_configure(std::int64_t rows) {
  struct alignas(64) {
    std::uint8_t palette, start, reserved[14];
    std::uint16_t bytes[16];
    std::uint8_t rows[16];
  } tiles = {};
  tiles.palette = 1;
  const auto upper = static_cast<std::uint8_t>(std::min<std::int64_t>(rows, 16));
  const auto lower = static_cast<std::uint8_t>(std::max<std::int64_t>(rows - 16, 1));
  const std::uint8_t all[8] = {upper, upper, lower, lower, upper, lower, 16, 16};
  for (int i = 0; i < 8; ++i) {
    tiles.bytes[i] = 64;
    tiles.rows[i] = all[i];
  }
  __asm__ volatile("" : : "m"(tiles));
  _tile_loadconfig(&tiles);
}
static inline void t_release() { _tile_release(); }
/// All sums.
__attribute__((always_inline)) static inline void t_zero() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

/// sums[row * stride + column], of up to 32 rows and 32 columns: in whole vectors.
template <class Sum>
__attribute__((always_inline)) static inline void t_store(std::int64_t rows, std::int64_t columns, Sum* sums,
                                                          std::int64_t stride) {
  _tile_stored(0, sums, stride * 4);
  if (columns > 16) _tile_stored(1, sums + 16, stride * 4);
  if (rows > 16) {
    _tile_stored(2, sums + 16 * stride, stride * 4);
    if (columns > 16) _tile_stored(3, sums + 16 * stride + 16, stride * 4);
  }
}
