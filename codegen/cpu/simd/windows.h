// Weight gradients of convolutions as implicit GEMM: the windows are read from copies of a part of the map, whose
// channels are neighbours there, so that no window is stored and a vector holds one tap of so many channels.
/// A convolution along one axis: positions of the result, taps of the kernel, what lies from one position and from one
/// tap to the next on the map, and how far neighbours of the result's gradient and of the map are apart in memory.
struct ConvAxis {
  std::int64_t positions, taps, step, dilation, left, right;
  /// Numbers of the map that so many positions reach over.
  constexpr std::int64_t reach(std::int64_t some) const { return (some - 1) * step + (taps - 1) * dilation + 1; }
};
/// columns: channels of the map; from one row of the result's gradient, channel of the map and row of the sums to the
/// next.
struct Windows {
  std::int64_t columns;
  ConvAxis down, across;
  std::int64_t left_row, right_column, to_row;
  constexpr std::int64_t taps() const { return down.taps * across.taps; }
};
/// Positions that are summed at once (K-blocking): a part of the map that stays in L1 or near it.
struct Block {
  std::int64_t lines, length;
};
inline constexpr std::int64_t w_near = 3 << 12;  ///< reals of the map that are copied at once
constexpr Block w_block(const Windows& w, std::int64_t wide) {
  const auto fits = [&](std::int64_t lines, std::int64_t length) {
    return w.down.reach(lines) * w.across.reach(length) * wide <= w_near;
  };
  Block block{1, w.across.positions};
  while (block.length > 32 && !fits(std::min<std::int64_t>(w.down.positions, 4), block.length))
    block.length = (block.length + 1) / 2;
  while (block.lines < w.down.positions && fits(block.lines + 1, block.length)) ++block.lines;
  const std::int64_t blocks = (w.down.positions + block.lines - 1) / block.lines;
  block.lines = (w.down.positions + blocks - 1) / blocks;
  return block;
}

/// to[(line * length + k) * to_row + i] = from[i * apart + line * down + k * along], for all i below `count`.
template <class Value>
static inline void w_pack(const Value* from, std::int64_t apart, std::int64_t count, std::int64_t down,
                          std::int64_t lines, std::int64_t along, std::int64_t length, real* to, std::int64_t to_row) {
  if constexpr (std::is_same_v<Value, real>) {
    if (along == 1 && down == length) {
      v_copy_transposed(from, apart, to, to_row, lines * length, count);
      return;
    }
    for (std::int64_t line = 0; line < lines && along == 1; ++line)
      v_copy_transposed(from + line * down, apart, to + line * length * to_row, to_row, length, count);
    if (along == 1) return;
  }
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t k = 0; k < length; ++k)
      for (std::int64_t i = 0; i < count; ++i) {
        const Value* const at = from + i * apart + line * down + k * along;
        if constexpr (std::is_same_v<Value, real>)
          to[(line * length + k) * to_row + i] = *at;
        else
          to[(line * length + k) * to_row + i] = real_at(at);
      }
}

/// The sums of one tile of so many rows and vectors, the last of which has `tail` lanes (0: all), are stored or added:
/// left[(line * length + k) * left_wide + row] * right[line * apart + k * step + column].
template <int high, int left_wide, int vectors, int tail>
static inline void w_tile(bool add, const real* left, const real* right, const Block& block, std::int64_t apart,
                          std::int64_t step, real* to, std::int64_t to_row) {
  vec sum[high][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < high; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) {
      if (add) v_fetch_line(to, i * to_row + j * lanes);
      sum[i][j] = v_zero();
    }
  for (std::int64_t line = 0; line < block.lines; ++line) {
    const real* x_at = right + line * apart;
    for (std::int64_t k = 0; k < block.length; ++k, left += left_wide, x_at += step) {
      vec x[vectors];
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) x[j] = v_load(x_at + j * lanes);
#pragma GCC unroll 16
      for (int i = 0; i < high; ++i) {
        const vec a = v_set(left[i]);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; ++j) sum[i][j] = v_fma(a, x[j], sum[i][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < high; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) {
      real* const at = to + i * to_row + j * lanes;
      if (tail && j + 1 == vectors)
        v_store_n(at, v_add(add ? v_load_n(at, tail) : v_zero(), sum[i][j]), tail);
      else
        v_store(at, v_add(add ? v_load(at) : v_zero(), sum[i][j]));
    }
}

/// Rows of [from, to] as [to, from].
template <std::int64_t from, std::int64_t to>
static void w_transpose_rows(std::int64_t begin, std::int64_t end, real* rows, std::int64_t row) {
  if constexpr (from > 1 && to > 1) {
    alignas(64) real copy[from * to];
    for (std::int64_t i = begin; i < end; ++i) {
      std::memcpy(copy, rows + i * row, sizeof copy);
      v_copy_transposed(copy, to, rows + i * row, from, to, from);
    }
  }
}

/// to[row * to_row + column * taps + tap], rows from `begin` to `end`, gets the sum of left * right over the positions
/// of all images, or is increased by it. The sums lie tap by tap while they are made, so that they are stored as
/// vectors. Image after image and block after block of the positions: the order does not depend on threads.
template <Windows given, int high, int vectors, class Left, class Right>
static void g_windows(std::int64_t begin, std::int64_t end, std::int64_t images, bool add, const Left* left,
                      std::int64_t left_image, const Right* right, std::int64_t right_image, real* to) {
  // A copy: Clang 19 gives the object that an argument of a template is to all sources, of which the linker keeps one.
  static constexpr Windows w = given;
  constexpr std::int64_t wide = vectors * lanes, deepest = 3 << 14;
  // Rows are copied by vectors where whole tiles of them fill one.
  constexpr int left_wide = lanes % high == 0 ? lanes : high;
  constexpr Block most = w_block(w, wide);
  constexpr std::int64_t positions = most.lines * most.length;
  constexpr std::int64_t most_rows = std::max<std::int64_t>(1, deepest / positions / left_wide) * left_wide;
  constexpr int rest = w.columns % wide;
  alignas(64) real left_tiles[most_rows * positions];
  alignas(64) real panel[w.down.reach(most.lines) * w.across.reach(most.length) * wide];
  if (add) w_transpose_rows<w.columns, w.taps()>(begin, end, to, w.to_row);
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t y = 0; y < w.down.positions; y += most.lines)
      for (std::int64_t x = 0; x < w.across.positions; x += most.length) {
        const Block block{std::min(most.lines, w.down.positions - y), std::min(most.length, w.across.positions - x)};
        const std::int64_t width = w.across.reach(block.length);
        const bool adds = add || image + y + x > 0;
        for (std::int64_t top = begin; top < end; top += most_rows) {
          const std::int64_t bottom = std::min(end, top + most_rows);
          for (std::int64_t row = top; row < bottom; row += left_wide)
            w_pack(left + image * left_image + row * w.left_row + y * w.down.left + x * w.across.left, w.left_row,
                   std::min<std::int64_t>(left_wide, bottom - row), w.down.left, block.lines, w.across.left,
                   block.length, left_tiles + (row - top) * block.lines * block.length, left_wide);
          for (std::int64_t column = 0; column < w.columns; column += wide) {
            w_pack(right + image * right_image + column * w.right_column + y * w.down.step * w.down.right +
                       x * w.across.step * w.across.right,
                   w.right_column, std::min<std::int64_t>(wide, w.columns - column), w.down.right,
                   w.down.reach(block.lines), w.across.right, width, panel, wide);
            for (std::int64_t row = top; row < bottom; row += high)
              for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
                const std::int64_t tile = row - top;
                const real* const a =
                    left_tiles + tile / left_wide * left_wide * block.lines * block.length + tile % left_wide;
                const real* const b =
                    panel +
                    (tap / w.across.taps * w.down.dilation * width + tap % w.across.taps * w.across.dilation) * wide;
                real* const at = to + row * w.to_row + tap * w.columns + column;
                const std::int64_t apart = w.down.step * width * wide, step = w.across.step * wide;
                if (w.columns - column >= wide) {
                  w_tile<high, left_wide, vectors, 0>(adds, a, b, block, apart, step, at, w.to_row);
                } else if constexpr (rest > 0) {
                  w_tile<high, left_wide, (rest + lanes - 1) / lanes, rest % lanes>(adds, a, b, block, apart, step, at,
                                                                                    w.to_row);
                }
              }
          }
        }
      }
  w_transpose_rows<w.taps(), w.columns>(begin, end, to, w.to_row);
}
