/// A matrix product in single precision, one tile of it a block: for every row and column of the tile,
/// store(row, column, sum of left(row, depth) * right(column, depth) for depth from `from` to before `to`), summed in
/// that order. Block x counts tiles of rows, block y tiles of columns.
///
/// A tile is `tile_rows` by `tile_columns`; a thread sums `of_thread` by `of_thread` of it. `left_deep`: neighbours in
/// memory are neighbours along the depth in the left matrix, else along its rows; `right_deep` alike. Threads of a
/// block: tile_rows * tile_columns / of_thread^2. Shared memory: product_bytes.
constexpr int product_depth = 8;
constexpr int product_bytes(int tile_rows, int tile_columns) {
  return product_depth * (tile_rows + 1 + tile_columns + 1) * static_cast<int>(sizeof(real));
}
template <int tile_rows, int tile_columns, int of_thread, bool left_deep, bool right_deep, class Left, class Right,
          class Store>
TESSERA_DEVICE void product(int rows, int columns, int from, int to, Left left, Right right, Store store) {
  constexpr int down = tile_rows / of_thread, across = tile_columns / of_thread, all = down * across;
  real* const left_tile = shared_memory<real>();  // [product_depth, tile_rows + 1]
  real* const right_tile = left_tile + product_depth * (tile_rows + 1);
  const int first_row = block_x() * tile_rows, first_column = block_y() * tile_columns;
  const int my_row = thread_x() / across, my_column = thread_x() % across;
  real sums[of_thread][of_thread];
  TESSERA_UNROLL
  for (int i = 0; i < of_thread; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < of_thread; ++j) sums[i][j] = 0;
  }
  for (int begin = from; begin < to; begin += product_depth) {
    TESSERA_UNROLL
    for (int at = thread_x(); at < tile_rows * product_depth; at += all) {
      const int depth = left_deep ? at % product_depth : at / tile_rows;
      const int row = left_deep ? at / product_depth : at % tile_rows;
      const bool inside = first_row + row < rows && begin + depth < to;
      left_tile[depth * (tile_rows + 1) + row] = inside ? left(first_row + row, begin + depth) : 0.0f;
    }
    TESSERA_UNROLL
    for (int at = thread_x(); at < tile_columns * product_depth; at += all) {
      const int depth = right_deep ? at % product_depth : at / tile_columns;
      const int column = right_deep ? at / product_depth : at % tile_columns;
      const bool inside = first_column + column < columns && begin + depth < to;
      right_tile[depth * (tile_columns + 1) + column] = inside ? right(first_column + column, begin + depth) : 0.0f;
    }
    barrier();
    TESSERA_UNROLL
    for (int depth = 0; depth < product_depth; ++depth) {
      real of_left[of_thread], of_right[of_thread];
      TESSERA_UNROLL
      for (int i = 0; i < of_thread; ++i) of_left[i] = left_tile[depth * (tile_rows + 1) + my_row + i * down];
      TESSERA_UNROLL
      for (int j = 0; j < of_thread; ++j) of_right[j] = right_tile[depth * (tile_columns + 1) + my_column + j * across];
      TESSERA_UNROLL
      for (int i = 0; i < of_thread; ++i) {
        TESSERA_UNROLL
        for (int j = 0; j < of_thread; ++j) sums[i][j] += of_left[i] * of_right[j];
      }
    }
    barrier();  // the next tiles are written where these were read
  }
  TESSERA_UNROLL
  for (int i = 0; i < of_thread; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < of_thread; ++j) {
      const int row = first_row + my_row + i * down, column = first_column + my_column + j * across;
      if (row < rows && column < columns) store(row, column, sums[i][j]);
    }
  }
}
