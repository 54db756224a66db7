/// A matrix product on tensor cores, one tile of it a block: for every row and column of the tile, store(row, column,
/// sum of the left factor's number at (row, depth) times the right one's at (column, depth) for depth from `from` to
/// before `to`), or what that gives back. Factors are of bf16, sums of single precision. Block x counts tiles of rows,
/// block y tiles of columns.
///
/// left(row, depth) and right(column, depth) say where a number lies. `left_deep`: neighbours in memory are neighbours
/// along the depth, else along the rows; `left_eights`: eight of them, from a multiple of eight on (of the depth
/// counted from 0), are neighbours in memory and begin on a multiple of 16 bytes. `right_deep` and `right_eights`
/// alike.
///
/// A tile is `tile_rows` by `tile_columns`, of `warps_down` by `warps_across` warps; each warp's part of it is made of
/// squares of 16. Shared memory: tensor_product_bytes. It holds the factors of several steps along the depth: while the
/// warps multiply one, asynchronous copies bring those behind it. Numbers that no eight holds come through registers.
constexpr int tensor_depth = 32;  ///< of a step
constexpr int tensor_steps = 4;   ///< that shared memory holds
/// Behind each row of the sums in shared memory, so that the rows that a warp writes at once lie in different banks.
constexpr int tensor_padding = 8;
constexpr int tensor_product_bytes(int tile_rows, int tile_columns) {
  const int factors = tensor_steps * (tile_rows + tile_columns) * tensor_depth * static_cast<int>(sizeof(bf16));
  const int sums = tile_rows * (tile_columns + tensor_padding) * static_cast<int>(sizeof(real));
  return factors > sums ? factors : sums;
}

/// The rows of a column of sums, `sum_of` says each, from `first` on: each `step`-th of a tile, all of which there are
/// where it is `whole`. `store` gives back what stores: the loads of so many rows at once are on their way before the
/// first of them is stored, wherever that lies. No branch around a load: the last row is loaded in the place of those
/// past the end.
template <bool whole, int tile_rows, int step, class SumOf, class Store, int... place>
TESSERA_DEVICE void store_rows_at_once(int first_row, int first, int rows, int column, SumOf sum_of, Store store,
                                       std::integer_sequence<int, place...>) {
  constexpr int at_once = sizeof...(place);
  static_assert(tile_rows / step % at_once == 0);
  TESSERA_ROLLED
  for (int i = 0; i < tile_rows / step; i += at_once) {
    const auto load = [=](int there) {
      const int row = first + (i + there) * step, at = first_row + row;
      return store(whole || at < rows ? at : rows - 1, column, sum_of(row));
    };
    const decltype(load(0)) later[] = {load(place)...};
    TESSERA_UNROLL
    for (int there = 0; there < at_once; ++there)
      if (whole || first_row + first + (i + there) * step < rows) later[there]();
  }
}
/// The same; row after row where `store` stores by itself.
template <int tile_rows, int step, int at_once = 8, class SumOf, class Store>
TESSERA_DEVICE void store_rows(int first_row, int first, int rows, int column, SumOf sum_of, Store store) {
  constexpr std::make_integer_sequence<int, at_once> places;
  if constexpr (std::is_void_v<decltype(store(0, 0, real(0)))>) {
    if constexpr (at_once < 8) {  // there are no registers for more pairs than one
      TESSERA_ROLLED
      for (int row = first; row < tile_rows && first_row + row < rows; row += step)
        store(first_row + row, column, sum_of(row));
    } else {
      TESSERA_UNROLL_BY_4
      for (int row = first; row < tile_rows && first_row + row < rows; row += step)
        store(first_row + row, column, sum_of(row));
    }
  } else if (first_row + tile_rows <= rows) {
    store_rows_at_once<true, tile_rows, step>(first_row, first, rows, column, sum_of, store, places);
  } else {
    store_rows_at_once<false, tile_rows, step>(first_row, first, rows, column, sum_of, store, places);
  }
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
/// along the depth where `deep`, else along the points: as in memory.
template <int points, bool deep, bool eights, int block>
struct Part {
  static constexpr int width = deep ? tensor_depth : points;
  static constexpr int together = eights ? 8 : 2;  ///< numbers that a thread brings at once
  static_assert(points * tensor_depth % (together * block) == 0);

  /// Zero where there is no point or depth. Eights are there when they have been waited for.
  template <class Factor>
  TESSERA_DEVICE static void bring(bf16* tile, int first, int count, int begin, int to, Factor factor) {
    TESSERA_UNROLL
    for (int piece = 0; piece < points * tensor_depth / together / block; ++piece) {
      const int at = thread_x() + piece * block, line = at / (width / together),
                place = at % (width / together) * together;
      const int point = first + (deep ? line : place), depth = begin + (deep ? place : line);
      const bool inside = point < count && depth < to;
      bf16* const there = tile + swizzled<width>(line, place);
      if constexpr (eights) {
        const int left = inside ? (deep ? to - depth : count - point) : 0;
        copy_async(there, factor(point, depth), left < 8 ? 2 * left : 16);
      } else {
        const bool second = inside && (deep ? depth + 1 < to : point + 1 < count);
        there[0] = inside ? *factor(point, depth) : bf16{0};
        there[1] = second ? *factor(point + !deep, depth + deep) : bf16{0};
      }
    }
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

template <int tile_rows, int tile_columns, int warps_down, int warps_across, bool left_deep, bool left_eights,
          bool right_deep, bool right_eights, class Left, class Right, class Store>
TESSERA_DEVICE void tensor_product(int rows, int columns, int from, int to, Left left, Right right, Store store) {
  constexpr int block = warps_down * warps_across * 32;
  constexpr int down = tile_rows / warps_down / 16, across = tile_columns / warps_across / 16;
  static_assert(block % tile_columns == 0 || tile_columns % block == 0);
  constexpr int right_at = tile_rows * tensor_depth, step = (tile_rows + tile_columns) * tensor_depth;
  using OfLeft = Part<tile_rows, left_deep, left_eights, block>;
  using OfRight = Part<tile_columns, right_deep, right_eights, block>;
  const int first_row = block_x() * tile_rows, first_column = block_y() * tile_columns;
  const int warp = thread_x() / 32, lane = thread_x() % 32;
  const int my_row = warp / warps_across * down * 16, my_column = warp % warps_across * across * 16;
  const int second = lane / 8 % 2 * 8, third = lane / 16 * 8;  // which of four matrices this lane names a line of

  bf16* const factors = shared_memory<bf16>();  // [tensor_steps, tile_rows or tile_columns, tensor_depth]
  const auto bring = [=](int place, int begin) {
    if (begin < to) {
      OfLeft::bring(factors + place * step, first_row, rows, begin, to, left);
      OfRight::bring(factors + place * step + right_at, first_column, columns, begin, to, right);
    }
    copy_commit();  // a group for each step, also where there is none: so many groups behind one is a step further on
  };
  TESSERA_UNROLL
  for (int ahead = 0; ahead < tensor_steps - 1; ++ahead) bring(ahead, from + ahead * tensor_depth);
  real sums[down][2 * across][4];
  TESSERA_UNROLL
  for (int i = 0; i < down * 2 * across * 4; ++i) sums[i / (2 * across * 4)][i / 4 % (2 * across)][i % 4] = 0;
  int now = 0;  // where the step lies that is multiplied
  for (int begin = from; begin < to; begin += tensor_depth) {
    copy_wait<tensor_steps - 2>();
    barrier();  // all threads' copies of this step are there, and all have multiplied the one before it
    bring((now + tensor_steps - 1) % tensor_steps, begin + (tensor_steps - 1) * tensor_depth);
    const bf16* const tile = factors + now * step;
    now = (now + 1) % tensor_steps;
    TESSERA_UNROLL
    for (int depth = 0; depth < tensor_depth; depth += 16) {
      std::uint32_t lefts[down][4], rights[4];
      TESSERA_UNROLL
      for (int i = 0; i < down; ++i) OfLeft::load_fragments(lefts[i], tile, my_row + i * 16 + second, depth + third);
      TESSERA_UNROLL
      for (int j = 0; j < across; ++j) {
        OfRight::load_fragments(rights, tile + right_at, my_column + j * 16 + third, depth + second);
        TESSERA_UNROLL
        for (int i = 0; i < down; ++i) {
          multiply_add(sums[i][2 * j], lefts[i], rights);
          multiply_add(sums[i][2 * j + 1], lefts[i], rights + 2);
        }
      }
    }
  }
  barrier();  // the sums lie where the factors were

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
  const int column = thread_x() % tile_columns;
  if (first_column + column < columns)
    store_rows<tile_rows, block / tile_columns>(
        first_row, thread_x() / tile_columns, rows, first_column + column,
        [=](int row) { return results[row * stride + column]; }, store);
}
