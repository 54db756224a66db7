// Matrix products read a weight, [columns, depth], from panels of bf16: [columns / width][depth][width].
/// A vector of element [column, k] and those of the next columns, which lie `across` apart.
static void pack_vector(const real* element, std::int64_t across, std::int64_t columns_left, bf16* to) {
  const std::int64_t some = std::clamp<std::int64_t>(columns_left, 0, lanes);
  v_store_bf16(to, v_load_strided(element, across, static_cast<int>(some)));
}
/// Copies rows of a weight, `first` up to `last`, into panels of `width` columns; the last panel is filled up with
/// zeros.
[[maybe_unused]] static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t width,
                                  std::int64_t first, std::int64_t last, bf16* panels) {
  for (std::int64_t begin = first; begin < last; begin += width)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t column = begin; column < begin + width; column += lanes)
        pack_vector(weight + column * depth + k, depth, columns - column,
                    panels + begin * depth + k * width + (column - begin));
}
/// The same of a weight that is stored as [depth, columns].
[[maybe_unused]] static void pack_transposed(const real* weight, std::int64_t columns, std::int64_t depth,
                                             std::int64_t width, std::int64_t first, std::int64_t last, bf16* panels) {
  for (std::int64_t begin = 0; begin < columns; begin += width)
    for (std::int64_t k = first; k < last; ++k)
      for (std::int64_t column = begin; column < begin + width; column += lanes)
        pack_vector(weight + k * columns + column, 1, columns - column,
                    panels + begin * depth + k * width + (column - begin));
}
