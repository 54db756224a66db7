// Factors as tiles take them, and weight gradients.
/// The transpose of 16 by 16 words: word j of row i becomes word i of row j.
static inline void t_transpose(__m512i (&row)[16]) {
  __m512i a[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      row[i + 2 * j] = _mm512_unpacklo_epi64(a[i + j], a[i + 2 + j]);
      row[i + 2 * j + 1] = _mm512_unpackhi_epi64(a[i + j], a[i + 2 + j]);
    }
  for (int i = 0; i < 16; i += 8)
    for (int j = 0; j < 4; ++j) {
      a[i + j] = _mm512_shuffle_i32x4(row[i + j], row[i + 4 + j], 0x88);
      a[i + 4 + j] = _mm512_shuffle_i32x4(row[i + j], row[i + 4 + j], 0xdd);
    }
  for (int j = 0; j < 8; ++j) {
    row[j] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0x88);
    row[j + 8] = _mm512_shuffle_i32x4(a[j], a[j + 8], 0xdd);
  }
}

/// Neighbours as bf16 in the lower halves of words, of which so many are there.
[[maybe_unused]] static inline __m512i t_halves(const bf16* from, __mmask16 there) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, from));
}
[[maybe_unused]] static inline __m512i t_halves(const real* from, __mmask16 there) {
  return _mm512_cvtepu16_epi32(v_narrowed(_mm512_maskz_loadu_ps(there, from)));
}
/// At most 16 rows of a left factor that are neighbours, 32 deep: two values of each, which are the lower and the upper
/// halves of words, become neighbours by a transpose.
template <class Left>
[[maybe_unused]] static inline void t_pack_neighbours(const Left* corner, std::int64_t along, int high,
                                                      std::int64_t deep, bf16* to, std::int64_t stride) {
  __m512i words[16];
  const __mmask16 there = v_first(high);
  for (int i = 0; i < 16; ++i) {
    words[i] = 2 * i < deep ? t_halves(corner + 2 * i * along, there) : _mm512_setzero_si512();
    if (2 * i + 1 < deep)
      words[i] = _mm512_or_si512(words[i], _mm512_slli_epi32(t_halves(corner + (2 * i + 1) * along, there), 16));
  }
  t_transpose(words);
  for (int i = 0; i < high; ++i) _mm512_storeu_si512(to + i * stride, words[i]);
}

/// Rows of a left factor side by side: to[row * stride + k] is from[row * across + k * along]; each row is filled up
/// with zeros to a whole tile.
[[maybe_unused]] static void t_pack_left(const bf16* from, std::int64_t across, std::int64_t along, std::int64_t rows,
                                         std::int64_t depth, bf16* to, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; row += 16)
    for (std::int64_t k = 0; k < depth; k += t_depth) {
      const int high = static_cast<int>(std::min<std::int64_t>(rows - row, 16));
      const std::int64_t deep = std::min<std::int64_t>(depth - k, t_depth);
      const bf16* const corner = from + row * across + k * along;
      if (across == 1) {
        t_pack_neighbours(corner, along, high, deep, to + row * stride + k, stride);
      } else {
        for (std::int64_t i = 0; i < high; ++i)
          for (std::int64_t j = 0; j < t_depth; ++j)
            to[(row + i) * stride + k + j] = j < deep ? corner[i * across + j * along] : bf16{0};
      }
    }
}

/// A panel of a right factor whose columns, at most 32, are neighbours: row k is at from[k * along].
[[maybe_unused]] static void t_pack_right(const bf16* from, std::int64_t along, std::int64_t columns,
                                          std::int64_t depth, bf16* panel) {
  const __mmask32 there = columns < 32 ? (1u << columns) - 1u : 0xffffffffu;
  alignas(64) std::uint16_t order[32];  // 0, 32, 1, 33, ...: values of two rows in turns
  for (int i = 0; i < 16; ++i) {
    order[2 * i] = static_cast<std::uint16_t>(i);
    order[2 * i + 1] = static_cast<std::uint16_t>(32 + i);
  }
  const __m512i near = _mm512_load_si512(order), far = _mm512_add_epi16(near, _mm512_set1_epi16(16));
  for (std::int64_t k = 0; k < t_whole(depth); k += 2, panel += 64) {
    const __m512i even = k < depth ? _mm512_maskz_loadu_epi16(there, from + k * along) : _mm512_setzero_si512();
    const __m512i odd =
        k + 1 < depth ? _mm512_maskz_loadu_epi16(there, from + (k + 1) * along) : _mm512_setzero_si512();
    _mm512_storeu_si512(panel, _mm512_permutex2var_epi16(even, near, odd));
    _mm512_storeu_si512(panel + 32, _mm512_permutex2var_epi16(even, far, odd));
  }
}

/// The same two of factors of single precision, which are rounded on their way.
[[maybe_unused]] static void t_pack_left(const real* from, std::int64_t across, std::int64_t along, std::int64_t rows,
                                         std::int64_t depth, bf16* to, std::int64_t stride) {
  if (across == 1 && along != 1) {
    for (std::int64_t row = 0; row < rows; row += 16)
      for (std::int64_t k = 0; k < depth; k += t_depth)
        t_pack_neighbours(from + row + k * along, along, static_cast<int>(std::min<std::int64_t>(rows - row, 16)),
                          std::min<std::int64_t>(depth - k, t_depth), to + row * stride + k, stride);
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t k = 0; k < t_whole(depth); k += lanes) {
      const int some = static_cast<int>(std::clamp<std::int64_t>(depth - k, 0, lanes));
      const real* const corner = from + row * across + std::min(k, depth) * along;
      v_store_bf16(to + row * stride + k, along == 1 ? v_load_n(corner, some) : v_load_strided(corner, along, some));
    }
}
[[maybe_unused]] static void t_pack_right(const real* from, std::int64_t along, std::int64_t columns,
                                          std::int64_t depth, bf16* panel) {
  for (std::int64_t k = 0; k < t_whole(depth); k += 2)
    for (std::int64_t half = 0; half < t_columns; half += lanes, panel += 2 * lanes) {
      const int wide = static_cast<int>(std::clamp<std::int64_t>(columns - half, 0, lanes));
      const auto row = [&](std::int64_t at) {
        const vec x = at < depth && wide ? v_load_n(from + at * along + half, wide) : v_zero();
        return _mm512_cvtepu16_epi32(v_narrowed(x));
      };
      _mm512_storeu_si512(panel, _mm512_or_si512(row(k), _mm512_slli_epi32(row(k + 1), 16)));
    }
}

/// Adds a product to `to`, or stores it there.
[[maybe_unused]] static inline void t_accumulate(bool add, std::int64_t rows, std::int64_t columns, const bf16* left,
                                                 std::int64_t left_stride, const bf16* panel, std::int64_t depth,
                                                 real* to, std::int64_t stride) {
  if (t_in_place && rows == t_rows && columns == t_columns) {
    t_accumulate_whole(add, left, left_stride, panel, depth, to, stride);
    return;
  }
  if (add)
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; column += lanes) v_fetch_line(to, row * stride + column);
  alignas(64) real sums[t_rows * t_columns];
  t_product(sums, rows, columns, left, left_stride, panel, depth, nullptr, 0);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; column += lanes) {
      const int wide = static_cast<int>(std::min<std::int64_t>(lanes, columns - column));
      real* const at = to + row * stride + column;
      const vec sum = v_load(sums + row * t_columns + column);
      v_store_n(at, add ? v_add(v_load_n(at, wide), sum) : sum, wide);
    }
}

/// A gradient of weights: to[row * to_row + column], rows from `begin` to `end`, sums products along the depth and over
/// the batch. Factors are at [image * of_image + k * along + row * across], or column. So many images of a chunk go
/// together through the tiles as L2 has room for; of large images, block after block of the depth, so
/// that the copies on a thread's stack do not grow with them.
template <std::int64_t columns, std::int64_t depth>
static void t_gradient(std::int64_t begin, std::int64_t end, const Group& group, const bf16* left,
                       std::int64_t left_image, std::int64_t left_across, std::int64_t left_along, const bf16* right,
                       std::int64_t right_image, std::int64_t right_along, real* to, std::int64_t to_row) {
  constexpr std::int64_t block = depth <= 1024 ? depth : 1024;
  constexpr std::int64_t even = block + block % 2, together = even < 512 ? 1024 / even : 1, most_rows = 128;
  // Rows are filled up where they end; an odd number of lines each, so that few of them meet in a set of the cache.
  constexpr std::int64_t stride = t_whole(even * (together - 1) + t_whole(block)) | t_depth;
  alignas(64) bf16 rows[most_rows * stride], panel[stride * t_columns];
  for (std::int64_t first = begin; first < end; first += most_rows) {
    const std::int64_t high = std::min(most_rows, end - first);
    std::int64_t chunk = group.chunk;
    for (std::int64_t image = 0, images = 0; image < group.images; image += images) {
      while (group.at(chunk + 1) <= image) ++chunk;
      images = std::min(together, group.at(chunk + 1) - image);
      for (std::int64_t from = 0; from < depth; from += block) {
        const std::int64_t some = std::min(block, depth - from), filled = images * (some + some % 2);
        const std::int64_t deep = t_filled(filled);
        for (std::int64_t i = 0; i < images; ++i)
          t_pack_left(left + (image + i) * left_image + first * left_across + from * left_along, left_across,
                      left_along, high, some, rows + i * even, stride);
        for (std::int64_t row = 0; row < high; ++row)
          std::fill(rows + row * stride + filled, rows + row * stride + deep, bf16{0});
        for (std::int64_t column = 0; column < columns; column += t_columns) {
          const std::int64_t wide = std::min(t_columns, columns - column);
          for (std::int64_t i = 0; i < images; ++i)
            t_pack_right(right + (image + i) * right_image + from * right_along + column, right_along, wide, some,
                         panel + i * even * t_columns);
          std::fill(panel + filled * t_columns, panel + deep * t_columns, bf16{0});
          t_configure(t_rows);
          for (std::int64_t row = 0; row < high; row += t_rows) {
            if (high - row < t_rows) t_configure(high - row);
            t_accumulate(group.first + image > 0 || from > 0, std::min(t_rows, high - row), wide, rows + row * stride,
                         stride, panel, deep, to + (first + row) * to_row + column, to_row);
          }
        }
      }
    }
  }
  t_release();
}
