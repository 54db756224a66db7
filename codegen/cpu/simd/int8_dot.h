/// Sums of so many rows and q_across vectors of columns. With every 64 products of a sum asks for `lines` lines of
/// memory from `ahead` on.
template <int rows>
static inline void t_dot(std::int32_t* sums, const int8* left, std::int64_t stride, const int8* panel,
                         const std::int32_t* of_columns, std::int64_t depth, const int8* ahead, std::int64_t lines) {
  constexpr std::int64_t width = sizeof(ivec) / 4;
  ivec sum[rows][q_across];
  for (int v = 0; v < q_across; ++v) {
    const ivec start = q_start(of_columns + v * width);
    for (int row = 0; row < rows; ++row) sum[row][v] = start;
  }
  for (std::int64_t k = 0; k < depth; k += 4, panel += 4 * q_columns) {
    if (k % q_depth == 0) {
      for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(ahead + line * 64, 0, 2);
      ahead += lines * 64;
    }
    ivec weights[q_across];
    for (int v = 0; v < q_across; ++v) weights[v] = q_load(panel + v * 4 * width);
    for (int row = 0; row < rows; ++row) {
      std::int32_t four;
      std::memcpy(&four, left + row * stride + k, sizeof four);
      const ivec values = q_set(four);
      for (int v = 0; v < q_across; ++v) sum[row][v] = q_add_products(sum[row][v], values, weights[v]);
    }
  }
  for (int row = 0; row < rows; ++row)
    for (int v = 0; v < q_across; ++v) q_store(sums + row * q_columns + v * width, sum[row][v]);
}
/// The same of at most q_rows.
template <int most = q_rows>
static inline void t_dots(std::int64_t rows, std::int32_t* sums, const int8* left, std::int64_t stride,
                          const int8* panel, const std::int32_t* of_columns, std::int64_t depth, const int8* ahead,
                          std::int64_t lines) {
  if (rows == most)
    t_dot<most>(sums, left, stride, panel, of_columns, depth, ahead, lines);
  else if constexpr (most > 1)
    t_dots<most - 1>(rows, sums, left, stride, panel, of_columns, depth, ahead, lines);
}
/// sums[row * 32 + column] of a matrix product; the first sums ask for the next panel: t_dot says how.
static inline void t_product(std::int32_t* sums, std::int64_t rows, std::int64_t columns, const int8* left,
                             std::int64_t stride, const int8* panel, std::int64_t depth, const int8* ahead,
                             std::int64_t lines) {
  constexpr std::int64_t across = q_across * sizeof(ivec) / 4;
  alignas(64) std::int32_t of_columns[q_columns];
  std::memcpy(of_columns, panel + q_whole(depth) * q_columns, sizeof of_columns);
  for (std::int64_t column = 0; column < columns; column += across)
    for (std::int64_t row = 0; row < rows; row += q_rows)
      t_dots(std::min<std::int64_t>(rows - row, q_rows), sums + row * q_columns + column, left + row * stride, stride,
             panel + column * 4, of_columns + column, depth, ahead, row || column ? 0 : lines);
}
