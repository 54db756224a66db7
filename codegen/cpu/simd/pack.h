// Matrix products read a weight, [columns, depth], from panels: [columns / width][depth][width].
/// Copies rows of a weight, `first` up to `last`, into panels of `width` columns; the last panel is filled up with
/// zeros.
[[maybe_unused]] static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t width,
                                  std::int64_t first, std::int64_t last, real* panels) {
  for (std::int64_t begin = first; begin < last; begin += width) {
    const std::int64_t some = std::min(width, columns - begin);
    real* const panel = panels + begin * depth;
    v_copy_transposed(weight + begin * depth, depth, panel, width, depth, some);
    for (std::int64_t k = 0; k < depth && some < width; ++k)
      std::fill_n(panel + k * width + some, width - some, real(0));
  }
}
/// The same of a weight that is stored as [depth, columns].
[[maybe_unused]] static void pack_transposed(const real* weight, std::int64_t columns, std::int64_t depth,
                                             std::int64_t width, std::int64_t first, std::int64_t last, real* panels) {
  for (std::int64_t begin = 0; begin < columns; begin += width)
    for (std::int64_t k = first; k < last; ++k)
      for (std::int64_t column = begin; column < begin + width; column += lanes) {
        const real* const from = weight + k * columns + column;
        const std::int64_t left = columns - column;
        v_store(panels + begin * depth + k * width + (column - begin), left >= lanes ? v_load(from)
                                                                       : left > 0
                                                                           ? v_load_n(from, static_cast<int>(left))
                                                                           : v_zero());
      }
}
