/// A matrix product on tensor cores, one tile of it a block: as `product`, but each factor is rounded to bf16 first.
/// Sums are of single precision.
///
/// A tile is `tile_rows` by `tile_columns`, of `warps_down` by `warps_across` warps; each warp's part of it is made of
/// squares of 16. Shared memory: tensor_product_bytes. It holds the factors of two steps along the depth: while the
/// warps multiply one, they load the next, through registers, because no asynchronous copy rounds.
constexpr int tensor_depth = 32;  ///< of a step
/// Behind each row of the sums in shared memory, so that the rows that a warp writes at once lie in different banks.
constexpr int tensor_padding = 8;
constexpr int tensor_product_bytes(int tile_rows, int tile_columns) {
  const int factors = 2 * (tile_rows + tile_columns) * tensor_depth * static_cast<int>(sizeof(bf16));
  const int sums = tile_rows * (tile_columns + tensor_padding) * static_cast<int>(sizeof(real));
  return factors > sums ? factors : sums;
}

/// Where a number lies in a tile whose lines are `width` numbers long. Eight numbers, 16 bytes, stay side by side; the
/// eights of a line change places, so that those which eight lines have at the same place lie in different banks.
template <int width>
TESSERA_DEVICE int swizzled(int line, int at) {
  constexpr int eights = width / 8, lines = eights < 8 ? 8 / eights : 1;  // lines that all banks hold together
  const int eight = (at / 8) ^ (line / lines % (eights < 8 ? eights : 8));
  return line * width + eight * 8 + at % 8;
}

/// A factor's part of a step: `points` rows (or columns) from `first` on, and the depths from `begin` on. Its lines run
/// along the depth where `deep`, else along the points: as in memory. A thread has neighbours two by two.
template <int points, bool deep, int block>
struct Part {
  static constexpr int width = deep ? tensor_depth : points, pairs = points * tensor_depth / 2 / block;
  real numbers[pairs][2];

  TESSERA_DEVICE static int line(int pair) { return (thread_x() + pair * block) / (width / 2); }
  TESSERA_DEVICE static int place(int pair) { return (thread_x() + pair * block) % (width / 2) * 2; }

  /// Zero where there is no point or depth.
  template <class Factor>
  TESSERA_DEVICE void load(int first, int count, int begin, int to, Factor factor) {
    TESSERA_UNROLL
    for (int pair = 0; pair < pairs; ++pair) {
      TESSERA_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int along = place(pair) + i, beside = line(pair);
        const int point = first + (deep ? beside : along), depth = begin + (deep ? along : beside);
        numbers[pair][i] = point < count && depth < to ? factor(point, depth) : 0.0f;
      }
    }
  }
  TESSERA_DEVICE void round_to(bf16* tile) const {
    TESSERA_UNROLL
    for (int pair = 0; pair < pairs; ++pair)
      *reinterpret_cast<std::uint32_t*>(tile + swizzled<width>(line(pair), place(pair))) =
          round_pair(numbers[pair][0], numbers[pair][1]);
  }
  /// Four 8 x 8 matrices for multiply_add: lane i names line i % 8 of the one that begins at this point and depth.
  TESSERA_DEVICE static void load_fragments(std::uint32_t fragments[4], const bf16* tile, int point, int depth) {
    const int in_matrix = thread_x() % 8;
    if constexpr (deep)
      load_matrices(fragments, tile + swizzled<width>(point + in_matrix, depth));
    else
      load_matrices_transposed(fragments, tile + swizzled<width>(depth + in_matrix, point));
  }
};

template <int tile_rows, int tile_columns, int warps_down, int warps_across, bool left_deep, bool right_deep,
          class Left, class Right, class Store>
TESSERA_DEVICE void tensor_product(int rows, int columns, int from, int to, Left left, Right right, Store store) {
  constexpr int block = warps_down * warps_across * 32;
  constexpr int down = tile_rows / warps_down / 16, across = tile_columns / warps_across / 16;
  static_assert(block % tile_columns == 0);
  constexpr int right_at = tile_rows * tensor_depth, step = (tile_rows + tile_columns) * tensor_depth;
  const int first_row = block_x() * tile_rows, first_column = block_y() * tile_columns;
  const int warp = thread_x() / 32, lane = thread_x() % 32;
  const int my_row = warp / warps_across * down * 16, my_column = warp % warps_across * across * 16;
  const int second = lane / 8 % 2 * 8, third = lane / 16 * 8;  // which of four matrices this lane names a line of

  bf16* const factors = shared_memory<bf16>();  // [2 steps, tile_rows or tile_columns, tensor_depth]
  Part<tile_rows, left_deep, block> of_left;
  Part<tile_columns, right_deep, block> of_right;
  of_left.load(first_row, rows, from, to, left);
  of_right.load(first_column, columns, from, to, right);
  of_left.round_to(factors);
  of_right.round_to(factors + right_at);
  barrier();
  real sums[down][2 * across][4];
  TESSERA_UNROLL
  for (int i = 0; i < down * 2 * across * 4; ++i) sums[i / (2 * across * 4)][i / 4 % (2 * across)][i % 4] = 0;
  int now = 0;  // the step that is multiplied
  for (int begin = from; begin < to; begin += tensor_depth) {
    const bf16* const tile = factors + now * step;
    now = 1 - now;
    bf16* const next = factors + now * step;
    TESSERA_UNROLL
    for (int half = 0; half < 2; ++half) {
      // Half of the next step is on its way at a time: that many registers less.
      if (half == 0)
        of_left.load(first_row, rows, begin + tensor_depth, to, left);
      else
        of_right.load(first_column, columns, begin + tensor_depth, to, right);
      const int depth = half * 16;
      std::uint32_t lefts[down][4], rights[4];
      TESSERA_UNROLL
      for (int i = 0; i < down; ++i) of_left.load_fragments(lefts[i], tile, my_row + i * 16 + second, depth + third);
      TESSERA_UNROLL
      for (int j = 0; j < across; ++j) {
        of_right.load_fragments(rights, tile + right_at, my_column + j * 16 + third, depth + second);
        TESSERA_UNROLL
        for (int i = 0; i < down; ++i) {
          multiply_add(sums[i][2 * j], lefts[i], rights);
          multiply_add(sums[i][2 * j + 1], lefts[i], rights + 2);
        }
      }
      if (half == 0)
        of_left.round_to(next);
      else
        of_right.round_to(next + right_at);
    }
    barrier();
  }

  // Through shared memory, so that neighbouring threads store neighbouring columns.
  constexpr int stride = tile_columns + tensor_padding;
  real* const results = shared_memory<real>();
  TESSERA_UNROLL
  for (int i = 0; i < down; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < 2 * across; ++j) {
      TESSERA_UNROLL
      for (int part = 0; part < 4; ++part) {
        const int row = my_row + i * 16 + lane / 4 + part / 2 * 8, column = my_column + j * 8 + lane % 4 * 2 + part % 2;
        results[row * stride + column] = sums[i][j][part];
      }
    }
  }
  barrier();
  const int column = thread_x() % tile_columns, left_over = rows - first_row;
  if (first_column + column >= columns) return;
  TESSERA_UNROLL_BY_4
  for (int row = thread_x() / tile_columns; row < tile_rows && row < left_over; row += block / tile_columns)
    store(first_row + row, first_column + column, results[row * stride + column]);
}
