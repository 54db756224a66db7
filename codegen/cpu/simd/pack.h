// Matrix products read a weight, [columns, depth], from panels: [columns / width][depth][width].
/// Copies a weight into panels of `width` columns; the last panel is filled up with zeros. Element [column, k] is at
/// weight[column * across + k * along].
static void pack_strided(const real* weight, std::int64_t across, std::int64_t along, std::int64_t columns,
                         std::int64_t depth, std::int64_t width, real* panels) {
  for (std::int64_t first = 0; first < columns; first += width)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t column = first; column < first + width; ++column)
        *panels++ = column < columns ? weight[column * across + k * along] : real(0);
}
[[maybe_unused]] static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t width,
                                  real* panels) {
  pack_strided(weight, depth, 1, columns, depth, width, panels);
}
/// The same of a weight that is stored as [depth, columns].
[[maybe_unused]] static void pack_transposed(const real* weight, std::int64_t columns, std::int64_t depth,
                                             std::int64_t width, real* panels) {
  pack_strided(weight, 1, columns, columns, depth, width, panels);
}
