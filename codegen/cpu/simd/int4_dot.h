/// Sums of so many rows and q_across vectors of columns, from `column` of the panel on: a group's are whole numbers,
/// then they are added to the others' as many times its scale. With every 64 products of a sum asks for `lines` lines
/// of memory from `ahead` on.
template <int rows>
static inline void t_dot(real* sums, const int8* left, std::int64_t stride, const int4* panel, std::int64_t column,
                         std::int64_t depth, const int4* ahead, std::int64_t lines) {
  const ivec lower = q_set(0x0f0f0f0f), zero = q_set(0);
  for (std::int64_t k = 0; k < depth; k += q4_depth, panel += q4_group) {
    if (k % q_depth == 0) {
      for (std::int64_t line = 0; line < lines; ++line) __builtin_prefetch(ahead + line * 64, 0, 2);
      ahead += lines * 64;
    }
    ivec sum[rows][q_across], offset[q_across];
    for (int v = 0; v < q_across; ++v) {
      offset[v] = zero;
      for (int row = 0; row < rows; ++row) sum[row][v] = zero;
    }
    for (std::int64_t within = 0; within < q4_depth; within += 4) {
      const int4* const weights = panel + within / 8 * 4 * q_columns + column * 4;
      ivec weight[q_across];
      for (int v = 0; v < q_across; ++v) {
        const ivec two = q_load(reinterpret_cast<const int8*>(weights) + v * 4 * lanes);
        weight[v] = within % 8 ? two & ~lower : (two & lower) << 4;
        offset[v] = q4_offset(offset[v], weight[v]);
      }
      for (int row = 0; row < rows; ++row) {
        std::int32_t four;
        std::memcpy(&four, left + row * stride + k + within, sizeof four);
        const ivec values = q_set(four);
        for (int v = 0; v < q_across; ++v) sum[row][v] = q_add_products(sum[row][v], values, weight[v]);
      }
    }
    for (int v = 0; v < q_across; ++v) {
      const vec scale = v_load_bf16(reinterpret_cast<const bf16*>(panel + q4_weights) + column + v * lanes);
      for (int row = 0; row < rows; ++row) {
        real* const at = sums + row * q_columns + v * lanes;
        const vec earlier = k ? v_load(at) : v_zero();
        v_store(at, v_fma(q4_reals(sum[row][v], offset[v]), scale, earlier));
      }
    }
  }
}
/// The same of at most q_rows.
template <int most = q_rows>
static inline void t_dots(std::int64_t rows, real* sums, const int8* left, std::int64_t stride, const int4* panel,
                          std::int64_t column, std::int64_t depth, const int4* ahead, std::int64_t lines) {
  if (rows == most)
    t_dot<most>(sums, left, stride, panel, column, depth, ahead, lines);
  else if constexpr (most > 1)
    t_dots<most - 1>(rows, sums, left, stride, panel, column, depth, ahead, lines);
}
/// sums[row * 32 + column] of a matrix product; the first sums ask for the next panel: t_dot says how.
static inline void t_product(real* sums, std::int64_t rows, std::int64_t columns, const int8* left, std::int64_t stride,
                             const int4* panel, std::int64_t depth, const int4* ahead, std::int64_t lines) {
  for (std::int64_t column = 0; column < columns; column += q_across * lanes)
    for (std::int64_t row = 0; row < rows; row += q_rows)
      t_dots(std::min<std::int64_t>(rows - row, q_rows), sums + row * q_columns + column, left + row * stride, stride,
             panel, column, depth, ahead, row || column ? 0 : lines);
}
