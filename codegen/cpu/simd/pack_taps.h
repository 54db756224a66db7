/// A convolution's weight that is stored as [depth / taps, columns, taps]: the gradient of its input sums over the
/// other channels and the taps. Planes from `first` up to `last` are copied into panels.
[[maybe_unused]] static void pack_taps(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t taps,
                                       std::int64_t width, std::int64_t first, std::int64_t last, real* panels) {
  for (std::int64_t begin = 0; begin < columns; begin += width) {
    const std::int64_t some = std::min(width, columns - begin);
    for (std::int64_t plane = first; plane < last; ++plane) {
      real* const panel = panels + begin * depth + plane * taps * width;
      v_copy_transposed(weight + (plane * columns + begin) * taps, taps, panel, width, taps, some);
      for (std::int64_t tap = 0; tap < taps && some < width; ++tap)
        std::fill_n(panel + tap * width + some, width - some, real(0));
    }
  }
}
