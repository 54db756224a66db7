// Products of bf16 in blocks of the depth, over t_pack_left, t_pack_right and t_product.
[[maybe_unused]] static constexpr bool t_is_narrow(const bf16*) { return true; }
[[maybe_unused]] static constexpr bool t_is_narrow(const real*) { return false; }

/// sums[row * 32 + column] of at most 36 rows, 32 columns and a depth of which all copies would not fit a thread's
/// stack: packs and multiplies block after block. A row of the left factor is at left[row * across + k * along], where
/// `along` 1 of bf16 needs no copy; a row of the right one at right[k * right_along], or in a panel of bf16 where
/// right_along is 0.
template <class Left, class Right>
[[maybe_unused]] static void t_product_in_blocks(real* sums, std::int64_t rows, std::int64_t columns, const Left* left,
                                                 std::int64_t across, std::int64_t along, const Right* right,
                                                 std::int64_t right_along, std::int64_t depth) {
  constexpr std::int64_t block = 1024, most_rows = 36;
  alignas(64) bf16 packed[most_rows * block], panel[block * t_columns];
  alignas(64) real of_block[most_rows * t_columns];
  for (std::int64_t k = 0; k < depth; k += block) {
    const std::int64_t some = std::min(block, depth - k);
    const bool packs = along != 1 || !t_is_narrow(left);
    if (packs) t_pack_left(left + k * along, across, along, rows, some, packed, block);
    if (right_along) t_pack_right(right + k * right_along, right_along, columns, some, panel);
    const bf16 *const from = packs ? packed : reinterpret_cast<const bf16*>(left + k),
                      *const columns_of = right_along ? panel : reinterpret_cast<const bf16*>(right + k * t_columns);
    t_product(k ? of_block : sums, rows, columns, from, packs ? block : across, columns_of, some, nullptr, 0);
    if (k)
      for (std::int64_t i = 0; i < rows * t_columns; i += lanes)
        v_store(sums + i, v_add(v_load(sums + i), v_load(of_block + i)));
  }
}
