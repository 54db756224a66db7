// Weight gradients: sums of products of two activations over the tokens of an image.
inline constexpr std::int64_t g_near = 3 << 14;  ///< reals of one factor that are copied at once, at most
/// Tokens that are summed at once, at most: K-blocking, so that the copies on a thread's stack do not grow with images.
inline constexpr std::int64_t g_deepest = 1 << 10;

template <std::int64_t count>
static inline void g_copy(const real* from, real* to) {
  std::memcpy(to, from, count * sizeof(real));
}
template <std::int64_t count, class Value>
static inline void g_copy(const Value* from, real* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = real_at(from + i);
}
/// `depth` steps of `columns` neighbours, from[k * along + c], tile after tile of `wide` columns.
template <std::int64_t wide, class Value>
static inline void g_pack(const Value* from, std::int64_t along, std::int64_t columns, std::int64_t depth, real* to) {
  for (std::int64_t k = 0; k < depth; ++k)
    for (std::int64_t c = 0; c < columns; c += wide) {
      const Value* const row = from + k * along + c;
      real* const tile = to + c * depth + k * wide;
      if (columns - c >= wide)
        g_copy<wide>(row, tile);
      else
        for (std::int64_t i = 0; i < columns - c; ++i) g_copy<1>(row + i, tile + i);
    }
}

/// The sums of one tile, of so many rows and vectors, the last of which has `tail` lanes (0: all), are stored or added.
template <int high, int wide, int vectors, int tail>
static inline void g_tile(bool add, const real* left, const real* right, std::int64_t depth, real* to,
                          std::int64_t to_row) {
  vec sum[high][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < high; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) {
      if (add) v_fetch_line(to, i * to_row + j * lanes);
      sum[i][j] = v_zero();
    }
  for (std::int64_t k = 0; k < depth; ++k) {
    vec x[vectors];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) x[j] = v_load(right + k * wide + j * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < high; ++i) {
      const vec a = v_set(left[k * high + i]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; ++j) sum[i][j] = v_fma(a, x[j], sum[i][j]);
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

/// The sums over the depth of `rows` neighbours, from[k * along + row], which have just been read: each in four parts.
[[maybe_unused]] static inline void g_sums(bool add, const real* from, std::int64_t along, std::int64_t rows,
                                           std::int64_t depth, real* to) {
  for (std::int64_t row = 0; row < rows; row += lanes) {
    const int some = static_cast<int>(std::min<std::int64_t>(lanes, rows - row));
    vec sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    const std::int64_t turns = depth / 4, rest = depth % 4;
    for (std::int64_t k = 0; k < turns; ++k)
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) sum[i] = v_add(sum[i], v_load_n(from + (4 * k + i) * along + row, some));
    for (std::int64_t i = 0; i < rest; ++i)
      sum[i] = v_add(sum[i], v_load_n(from + (4 * turns + i) * along + row, some));
    const vec all = v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
    v_store_n(to + row, add ? v_add(v_load_n(to + row, some), all) : all, some);
  }
}
/// So many columns, whole tiles of them, or rows of the other factor lie in `near` reals; one tile where they do not.
[[maybe_unused]] constexpr std::int64_t g_fit(std::int64_t near, std::int64_t depth, std::int64_t tile) {
  return std::max<std::int64_t>(1, near / depth / tile) * tile;
}

/// Of one image: to[row * to_row + column], rows from `begin` to `end`, gets the sum of left[k * left_along + row] *
/// right[k * right_along + column] over the depth, or is increased by it; and so does biases[row], where there are any,
/// of left[k * left_along + row]. Both factors are copied tile after tile, so that sums go through them in order, block
/// after block of the depth.
template <std::int64_t columns, std::int64_t depth, int high, int vectors, class Left, class Right>
static void g_gradient(std::int64_t begin, std::int64_t end, bool add, const Left* left, std::int64_t left_along,
                       const Right* right, std::int64_t right_along, real* to, std::int64_t to_row, real* biases) {
  constexpr std::int64_t wide = vectors * lanes, tiles = (columns + wide - 1) / wide;
  constexpr std::int64_t blocks = (depth + g_deepest - 1) / g_deepest, block = (depth + blocks - 1) / blocks;
  alignas(64) real right_tiles[std::min(g_fit(g_near, block, wide), tiles * wide) * block];
  alignas(64) real left_tiles[g_fit(g_near / 4, block, high) * block];
  // What is packed of the B operand lies in L2 beside other things.
  const std::int64_t part = tessera_l2_bytes() / 16 * 3 / static_cast<std::int64_t>(sizeof(real));
  const std::int64_t near = std::min(g_near, part);
  const std::int64_t across = std::min(g_fit(near, block, wide), tiles * wide), down = g_fit(near / 4, block, high);
  constexpr int rest = columns % wide;
  for (std::int64_t from = 0; from < depth; from += block) {
    const std::int64_t deep = blocks == 1 ? depth : std::min(block, depth - from);
    const bool adds = add || from > 0;
    for (std::int64_t first = 0; first < columns; first += across) {
      const std::int64_t last = std::min(columns, first + across);
      g_pack<wide>(right + from * right_along + first, right_along, last - first, deep, right_tiles);
      for (std::int64_t top = begin; top < end; top += down) {
        const std::int64_t bottom = std::min(end, top + down);
        const Left* const rows = left + from * left_along + top;
        g_pack<high>(rows, left_along, bottom - top, deep, left_tiles);
        if constexpr (std::is_same_v<Left, real>)
          if (biases && first == 0) g_sums(adds, rows, left_along, bottom - top, deep, biases + top);
        for (std::int64_t column = first; column < last; column += wide)
          for (std::int64_t row = top; row < bottom; row += high) {
            const real* const a = left_tiles + (row - top) * deep;
            const real* const b = right_tiles + (column - first) * deep;
            real* const at = to + row * to_row + column;
            if (last - column >= wide) {
              g_tile<high, wide, vectors, 0>(adds, a, b, deep, at, to_row);
            } else if constexpr (rest > 0) {
              g_tile<high, wide, (rest + lanes - 1) / lanes, rest % lanes>(adds, a, b, deep, at, to_row);
            }
          }
      }
    }
  }
}
