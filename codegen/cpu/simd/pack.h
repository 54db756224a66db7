// Matrix products read a weight, declared [columns, depth], from panels: [columns / width][depth][width].
/// Copies a weight into panels of `width` columns; the last panel is filled up with zeros.
static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t width, real* panels) {
  for (std::int64_t first = 0; first < columns; first += width)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t column = first; column < first + width; ++column)
        *panels++ = column < columns ? weight[column * depth + k] : real(0);
}
