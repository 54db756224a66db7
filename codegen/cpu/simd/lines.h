// Lines of a map, on the stack, from tiles with lanes along output channels.
/// to[column * to_row + row] = a tile's sums of so many rows and columns. Vectors are stored whole: what lies behind
/// its last row changes.
template <int rows, int columns>
[[gnu::always_inline]] static inline void v_store_transposed(const real* sums, real* to, std::int64_t to_row) {
#pragma GCC unroll 16
  for (int i = 0; i < rows; i += lanes)
#pragma GCC unroll 16
    for (int k = 0; k < columns; k += lanes) {
      vec row[lanes];
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) row[j] = i + j < rows ? v_load(sums + (i + j) * columns + k) : v_zero();
      v_transpose(row);
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) v_store(to + (k + j) * to_row + i, row[j]);
    }
}
