// Products of bf16 in blocks of the depth, over t_pack_left, t_pack_right and t_product.
/// sums[row * 32 + column] of at most 36 rows, 32 columns and a depth of which all copies would not fit a thread's
/// stack: packs and multiplies block after block. A row of the left factor is at left[row * across + k * along], where
/// `along` 1 needs no copy; a row of the right one at right[k * right_along], or in a panel where right_along is 0.
[[maybe_unused]] static void t_product_in_blocks(real* sums, std::int64_t rows, std::int64_t columns, const bf16* left,
                                                 std::int64_t across, std::int64_t along, const bf16* right,
                                                 std::int64_t right_along, std::int64_t depth) {
  constexpr std::int64_t block = 1024, most_rows = 36;
  alignas(64) bf16 packed[most_rows * block], panel[block * t_columns];
  alignas(64) real of_block[most_rows * t_columns];
  for (std::int64_t k = 0; k < depth; k += block) {
    const std::int64_t some = std::min(block, depth - k);
    const bf16* from = left + k * along;
    if (along != 1) {
      t_pack_left(from, across, along, rows, some, packed, block);
      from = packed;
    }
    if (right_along) t_pack_right(right + k * right_along, right_along, columns, some, panel);
    t_product(k ? of_block : sums, rows, columns, from, along == 1 ? across : block,
              right_along ? panel : right + k * t_columns, some, nullptr, 0);
    if (k)
      for (std::int64_t i = 0; i < rows * t_columns; i += lanes)
        v_store(sums + i, v_add(v_load(sums + i), v_load(of_block + i)));
  }
}
