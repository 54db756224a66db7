// Matrix products read a weight, [columns, depth], from panels of bf16: [columns / width][depth][width].
/// Copies a weight into panels of `width` columns; the last panel is filled up with zeros. Element [column, k] is at
/// weight[column * across + k * along].
static void pack_strided(const real* weight, std::int64_t across, std::int64_t along, std::int64_t columns,
                         std::int64_t depth, std::int64_t width, bf16* panels) {
  for (std::int64_t first = 0; first < columns; first += width)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t column = first; column < first + width; column += lanes, panels += lanes) {
        const std::int64_t left = std::max<std::int64_t>(0, columns - column);
        v_store_bf16(panels, v_load_strided(weight + column * across + k * along, across,
                                            static_cast<int>(std::min<std::int64_t>(lanes, left))));
      }
}
[[maybe_unused]] static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t width,
                                  bf16* panels) {
  pack_strided(weight, depth, 1, columns, depth, width, panels);
}
/// The same of a weight that is stored as [depth, columns].
[[maybe_unused]] static void pack_transposed(const real* weight, std::int64_t columns, std::int64_t depth,
                                             std::int64_t width, bf16* panels) {
  pack_strided(weight, 1, columns, columns, depth, width, panels);
}
