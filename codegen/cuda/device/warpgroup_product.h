/// A matrix product by warpgroups, for sm_90a: as tensor_product, but a tensor map brings each factor (its lines along
/// the depth where `deep`, else along the rows or columns), and what is outside of it is zero: `from` is a multiple of
/// 64, and a last step may go past `to` where both factors end. `left_third` and the like are the block's place in the
/// factor's other two extents.
///
/// Two warpgroups multiply, `down` of them below each other; a thread of one warp more brings the factors. Shared
/// memory holds `steps` steps along the depth, each with a gate that opens when it is there and one that opens when all
/// for whom this block brings something have multiplied it. Blocks that share rows are neighbours. Where a `cluster` is
/// of two blocks, which lie below each other, each brings its rows and half of the columns for both; where it is of
/// four, two by two, half of either. A cluster lies along block x, which counts half tiles of rows where it is of four,
/// and block y twice as many columns.
constexpr int warpgroup_depth = 64;                  ///< of a step: a line of 128 bytes
constexpr int multiplying = 256;                     ///< threads
constexpr int warpgroup_threads = multiplying + 32;  ///< of a block
constexpr int warpgroup_factor_bytes(int tile_rows, int tile_columns, int steps) {
  return steps * (tile_rows + tile_columns) * warpgroup_depth * static_cast<int>(sizeof(bf16));
}
constexpr int warpgroup_product_bytes(int tile_rows, int tile_columns, int steps) {
  return warpgroup_factor_bytes(tile_rows, tile_columns, steps) + 2 * steps * static_cast<int>(sizeof(Gate));
}

/// Of shared memory in lines of 128 bytes, as copy_box writes it: a PTX matrix descriptor. `leading`: bytes from 64
/// numbers along the lines to the next 64, where lines run across the depth. Eight lines are 1024 bytes.
TESSERA_DEVICE std::uint64_t descriptor(std::uint32_t address, int leading) {
  constexpr std::uint64_t swizzled_128 = 1;
  return std::uint64_t{(address & 0x3ffff) >> 4} | static_cast<std::uint64_t>(leading >> 4) << 16 |
         std::uint64_t{1024 >> 4} << 32 | swizzled_128 << 62;
}

/// A factor's part of a step: `points` rows (or columns), in one piece of lines or in one for each 64 of them. Of each,
/// one of `sharing` blocks (their bits in the cluster: `blocks`) brings a box of so many lines for all.
template <int points, bool deep, int sharing>
struct BoxesOf {
  static constexpr int box = (deep ? points : warpgroup_depth) * 64, lines = box / 64 / sharing;

  TESSERA_DEVICE static void bring(bf16* tile, const CUtensorMap& map, Gate* gate, int share, int blocks, int first,
                                   int depth, int third, int fourth) {
    const int line = share * lines;
    TESSERA_UNROLL
    for (int i = 0; i < points * warpgroup_depth / box; ++i)
      copy_box<sharing>(tile + i * box + line * 64, map, gate, blocks, deep ? depth : first + i * 64,
                        (deep ? first : depth) + line, third, fourth);
  }
  /// Of the points from a multiple of 64 on, and 16 depths.
  TESSERA_DEVICE static std::uint64_t descriptor_of(const bf16* tile, int point, int depth) {
    return descriptor(shared_address(tile + (deep ? point * 64 + depth : point / 64 * box + depth * 64)),
                      box * static_cast<int>(sizeof(bf16)));
  }
};

/// The left factor's rows of a tile, `of_lane` of which each lane of a warp sums along the depth. Lines run across it.
template <int tile_rows>
struct RowSums {
  static constexpr int of_lane = tile_rows / 32, box = warpgroup_depth * 64;
  struct alignas(of_lane * sizeof(bf16)) Together {
    std::uint16_t bits[of_lane];
  };
  real sums[of_lane];

  TESSERA_DEVICE void begin() {
    TESSERA_UNROLL
    for (int i = 0; i < of_lane; ++i) sums[i] = 0;
  }
  TESSERA_DEVICE void add(const bf16* tile, int lane) {
    const int point = lane * of_lane;
    tile += point / 64 * box + point % 8;
    TESSERA_UNROLL_BY_4
    for (int depth = 0; depth < warpgroup_depth; ++depth) {
      const int eight = (point % 64 / 8) ^ (depth % 8);  // as copy_box swizzles them
      const Together numbers = *reinterpret_cast<const Together*>(tile + depth * 64 + eight * 8);
      TESSERA_UNROLL
      for (int i = 0; i < of_lane; ++i) sums[i] += widened(bf16{numbers.bits[i]});
    }
  }
};

struct StoreNothing {
  TESSERA_DEVICE void operator()(int, int, real) const {}
};

/// Where `shares` is not 0, the warp that brings also sums each row of the left factor, whose lines run across the
/// depth: the first `shares` of the blocks with the same rows each sum some of the steps, for
/// store_sum(which of them, row, sum).
template <int tile_rows, int tile_columns, int down, int steps, int cluster, bool left_deep, bool right_deep,
          int shares = 0, class Store, class StoreSum = StoreNothing>
TESSERA_DEVICE void warpgroup_product(int rows, int columns, int from, int to, const CUtensorMap& left, int left_third,
                                      int left_fourth, const CUtensorMap& right, int right_third, int right_fourth,
                                      Store store, StoreSum store_sum = {}) {
#if TESSERA_WARPGROUPS
  constexpr int my_rows = tile_rows / down, my_columns = tile_columns * down / 2, parts = my_rows / 64;
  constexpr int right_at = tile_rows * warpgroup_depth, step = (tile_rows + tile_columns) * warpgroup_depth;
  constexpr int stride = tile_columns + tensor_padding;
  static_assert(shares == 0 || (!left_deep && cluster <= 2));  // by whom rows are summed, they are brought
  static_assert(my_rows % 64 == 0 && tile_rows * stride * sizeof(real) <= steps * step * sizeof(bf16));
  constexpr int across = cluster > 2 ? 2 : 1, over = cluster / across;  // blocks of a cluster
  using OfLeft = BoxesOf<tile_rows, left_deep, across>;
  using OfRight = BoxesOf<tile_columns, right_deep, over>;
  bf16* const factors = shared_tiles<bf16>();  // [steps, tile_rows and tile_columns, warpgroup_depth]
  Gate* const full = reinterpret_cast<Gate*>(factors + steps * step);
  Gate* const empty = full + steps;
  const int warp = same_in_warp(thread_x() / 32);  // descriptors and roles are a warp's
  if (thread_x() == multiplying) {
    prefetch_map(left);
    prefetch_map(right);
  }
  if (thread_x() == 0) {
    for (int i = 0; i < steps; ++i) {
      gate_begin(full + i, 1);
      gate_begin(empty + i, (across + over - 1) * multiplying / 32);
    }
    asynchronous_fence();
  }
  barrier_of_gates<cluster>();  // the gates are there

  constexpr int cluster_rows = over * tile_rows, cluster_columns = across * tile_columns;
  const int below = (rows + cluster_rows - 1) / cluster_rows,
            beside = (columns + cluster_columns - 1) / cluster_columns;
  const int at = block_x() / cluster + block_y() * below;
  const int down_at = block_x() % cluster % over, across_at = block_x() % cluster / over;
  const int first_row = at / beside * cluster_rows + down_at * tile_rows,
            first_column = at % beside * cluster_columns + across_at * tile_columns;
  const int of_my_rows = ((across - 1) << over | 1) << down_at,
            of_my_columns = ((1 << over) - 1) << across_at * over,  // blocks of the cluster, a bit for each
      of_mine = of_my_rows | of_my_columns;                         // those that bring something for this one
  const int lane = thread_x() % 32;
  const int my_row = warp / 4 % down * my_rows, my_column = warp / 4 / down * my_columns;
  real sums[parts][my_columns / 2];
  int place = 0;  // of the step
  if (warp >= multiplying / 32) {
    // A step is summed when those behind it that there is memory for are on their way.
    constexpr int ahead = shares > 0 ? (steps - 1) * warpgroup_depth : 0;
    const int share = first_column / tile_columns;
    RowSums<tile_rows> of_rows;
    of_rows.begin();
    int parity = 1, summed = 0, phase = 0;
    for (int begin = from; (shares > 0 || lane == 0) && begin < to + ahead; begin += warpgroup_depth) {
      if (lane == 0 && begin < to) {
        gate_wait(empty + place, parity);
        gate_expect(full + place, step * static_cast<int>(sizeof(bf16)));
        bf16* const tile = factors + place * step;
        OfLeft::bring(tile, left, full + place, across_at, of_my_rows, first_row, begin, left_third, left_fourth);
        OfRight::bring(tile + right_at, right, full + place, down_at, of_my_columns, first_column, begin, right_third,
                       right_fourth);
        place = place + 1 == steps ? 0 : place + 1;
        parity ^= place == 0;
      }
      if (shares == 0 || begin < from + ahead) continue;
      gate_wait(full + summed, phase);
      if ((begin - ahead - from) / warpgroup_depth % (shares > 0 ? shares : 1) == share)
        of_rows.add(factors + summed * step, lane);
      asynchronous_fence();
      barrier_of<2, 32>();  // all lanes have read it, and the first brings another one there
      summed = summed + 1 == steps ? 0 : summed + 1;
      phase ^= summed == 0;
    }
    TESSERA_UNROLL
    for (int i = 0; i < of_rows.of_lane; ++i)
      if (const int row = first_row + lane * of_rows.of_lane + i; share < shares && row < rows)
        store_sum(share, row, of_rows.sums[i]);
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < parts * my_columns / 2; ++i) sums[i / (my_columns / 2)][i % (my_columns / 2)] = 0;
    int parity = 0;
    for (int begin = from; begin < to; begin += warpgroup_depth) {
      gate_wait(full + place, parity);
      const bf16* const tile = factors + place * step;
      multiplications_begin();
      TESSERA_UNROLL
      for (int depth = 0; depth < warpgroup_depth; depth += 16) {
        const std::uint64_t rights = OfRight::descriptor_of(tile + right_at, my_column, depth);
        TESSERA_UNROLL
        for (int part = 0; part < parts; ++part)
          multiply_add_async<my_columns, !left_deep, !right_deep>(
              sums[part], OfLeft::descriptor_of(tile, my_row + part * 64, depth), rights);
      }
      multiplications_commit();
      multiplications_wait<1>();  // the step before this one is multiplied
      if (begin > from && of_mine >> lane & 1) gate_arrive<cluster>(empty + (place == 0 ? steps : place) - 1, lane);
      place = place + 1 == steps ? 0 : place + 1;
      parity ^= place == 0;
    }
    multiplications_wait<0>();
  }
  cluster_barrier<cluster>();  // sums lie where factors were; and no block ends while another speaks to its gates
  if (warp >= multiplying / 32) return;

  // Through shared memory, so that neighbouring threads store neighbouring columns.
  real* const results = shared_tiles<real>();
  TESSERA_UNROLL
  for (int part = 0; part < parts; ++part) {
    TESSERA_UNROLL
    for (int i = 0; i < my_columns / 2; ++i) {
      const int row = my_row + part * 64 + warp % 4 * 16 + lane / 4 + i / 2 % 2 * 8,
                column = my_column + i / 4 * 8 + lane % 4 * 2 + i % 2;
      results[row * stride + column] = sums[part][i];
    }
  }
  barrier_of<1, multiplying>();
  TESSERA_ROLLED  // the instructions of eight rows are enough for the instruction cache
      for (int begin = 0; begin < tile_columns; begin += 32) {
    const int column = begin + lane;
    if (first_column + column >= columns) return;
    store_rows<tile_rows, multiplying / 32>(first_row, warp, rows, first_column + column, results + column, stride,
                                            store);
  }
#endif
}
