/// out [rows, columns] = left right^T by warpgroup_product, for a group of four: the block's z. Included where a
/// warpgroup_product is: the device's own, or one with a fault.
template <int tile_rows, int tile_columns, int down, int teams, int steps, int cluster, bool left_deep, bool right_deep>
__global__ void __launch_bounds__(TESSERA_THREADS_OF_WARPGROUPS(warpgroup_threads(teams)), 1)
    by_warpgroups(TESSERA_MAP left, TESSERA_MAP right, float* out, int rows, int columns, int from, int to) {
  const int group = block_z();
  warpgroup_product<tile_rows, tile_columns, down, teams, steps, cluster, left_deep, right_deep>(
      rows, columns, from, to, left, group % 2, group / 2, right, group % 2, group / 2,
      [=](int row, int column, real sum) { return [=] { out[(group * rows + row) * columns + column] = sum; }; });
}
/// The same, and of each row the sums along the depth by `shares` blocks: of_rows [group, share, rows].
template <int tile_rows, int tile_columns, int down, int steps, int cluster, bool right_deep, int shares>
__global__ void __launch_bounds__(TESSERA_THREADS_OF_WARPGROUPS(warpgroup_threads(1) + 32), 1)
    by_warpgroups_with_sums(TESSERA_MAP left, TESSERA_MAP right, float* out, float* of_rows, int rows, int columns,
                            int from, int to) {
  const int group = block_z();
  warpgroup_product<tile_rows, tile_columns, down, 1, steps, cluster, false, right_deep, shares>(
      rows, columns, from, to, left, group % 2, group / 2, right, group % 2, group / 2,
      [=](int row, int column, real sum) { return [=] { out[(group * rows + row) * columns + column] = sum; }; },
      [=](int share, int row, real sum) { of_rows[(group * shares + share) * rows + row] = sum; });
}
