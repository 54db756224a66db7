// Weights in panels of bf16: [columns / 32][depth / 2][32][2], the depth filled up with zeros to whole tiles.
/// Copies rows of a weight, [columns, depth], `first` up to `last`, into panels; the last panel is filled up with
/// zeros.
[[maybe_unused]] static void pack(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t,
                                  std::int64_t first, std::int64_t last, bf16* panels) {
  for (std::int64_t begin = first; begin < last; begin += t_columns)
    for (std::int64_t k = 0; k < t_whole(depth); k += t_depth)
      for (std::int64_t half = 0; half < t_columns; half += 16) {
        __m512i words[16];
        const int low = static_cast<int>(std::min<std::int64_t>(depth - k, 16));
        const int high = static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(depth - k - 16, 0), 16));
        for (std::int64_t i = 0; i < 16; ++i) {
          const std::int64_t column = begin + half + i;
          const real* const from = weight + std::min(column, columns - 1) * depth + k;
          words[i] = column < columns ? _mm512_inserti64x4(_mm512_castsi256_si512(v_narrowed(v_load_n(from, low))),
                                                           v_narrowed(v_load_n(from + low, high)), 1)
                                      : _mm512_setzero_si512();
        }
        t_transpose(words);
        bf16* const to = panels + begin * t_whole(depth) + k * t_columns + half * 2;
        for (int pair = 0; pair < 16; ++pair) _mm512_storeu_si512(to + pair * 64, words[pair]);
      }
}
/// The same of a weight that is stored as [depth, columns]: rows from `first`, where a tile begins.
[[maybe_unused]] static void pack_transposed(const real* weight, std::int64_t columns, std::int64_t depth, std::int64_t,
                                             std::int64_t first, std::int64_t last, bf16* panels) {
  for (std::int64_t begin = 0; begin < columns; begin += t_columns)
    for (std::int64_t k = first; k < t_whole(last); k += 2)
      for (std::int64_t half = 0; half < t_columns; half += 16) {
        const std::int64_t column = std::min(begin + half, columns);
        const int wide = static_cast<int>(std::min<std::int64_t>(columns - column, 16));
        const auto row = [&](std::int64_t at) {
          return _mm512_cvtepu16_epi32(
              v_narrowed(at < depth ? v_load_n(weight + at * columns + column, wide) : v_zero()));
        };
        _mm512_storeu_si512(panels + begin * t_whole(depth) + k * t_columns + half * 2,
                            _mm512_or_si512(row(k), _mm512_slli_epi32(row(k + 1), 16)));
      }
}
