/// A matrix product by warpgroups, for sm_90a: as tensor_product, but a tensor map brings each factor (its lines along
/// the depth where `deep`, else along the rows or columns), and what is outside of it is zero: `from` is a multiple of
/// 64, and a last step may go past `to` where both factors end. `left_third` and the like are the block's place in the
/// factor's other two extents.
///
/// Two warpgroups are a team that multiplies a tile, `down` of them below each other; a thread of one warp more brings
/// the factors. Two `teams` take turns, tile by tile (ping-pong): while one stores its tile the other multiplies the
/// next, so that tensor cores do not wait for what becomes of the sums. Shared memory holds `steps` steps along the
/// depth, each with a gate that opens when it is there and one that opens when all for whom this block brings something
/// have multiplied it. Tiles that share rows are neighbours. Where a `cluster` is of two blocks, whose tiles lie below
/// each other, each brings its rows and half of the columns for both; where it is of four, two by two, half of either.
///
/// Blocks along x share the tiles, one after the other, so that the next tile's factors come while this one is stored;
/// no more of them are started than find room at once (launch_warpgroups).
constexpr int warpgroup_depth = 64;  ///< of a step: a line of 128 bytes
constexpr int team_threads = 256;
/// Of a block; with a warp more where rows are summed.
constexpr int warpgroup_threads(int teams) { return teams * team_threads + 32; }
constexpr int square_rows = 16, square_columns = 32;  ///< of sums that a warp stores at once
constexpr int warpgroup_factor_bytes(int tile_rows, int tile_columns, int steps) {
  return steps * (tile_rows + tile_columns) * warpgroup_depth * static_cast<int>(sizeof(bf16));
}
constexpr int warpgroup_product_bytes(int tile_rows, int tile_columns, int teams, int steps) {
  const int squares = teams * team_threads / 32 * square_rows * square_columns * static_cast<int>(sizeof(real));
  const int gates = 2 * steps + (teams > 1 ? teams : 0);
  return warpgroup_factor_bytes(tile_rows, tile_columns, steps) + squares + gates * static_cast<int>(sizeof(Gate));
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

/// Sums along the depth of the left factor's rows of a tile, by one warp, of which each lane has some neighbours. Lines
/// run across the depth. It adds, and leaves the tensor cores to those who multiply.
template <int tile_rows>
struct RowSums {
  static constexpr int box = warpgroup_depth * 64, of_lane = tile_rows / 32;
  static_assert(of_lane % 2 == 0 && of_lane <= 8);
  real sums[of_lane];

  TESSERA_DEVICE void begin() {
    TESSERA_UNROLL
    for (int i = 0; i < of_lane; ++i) sums[i] = 0;
  }
  TESSERA_DEVICE void add(const bf16* tile, int lane) {
    const int row = lane * of_lane;
    const bf16* const here = tile + row / 64 * box + row % 8;
    TESSERA_ROLLED
    for (int depth = 0; depth < warpgroup_depth; depth += 8) {
      TESSERA_UNROLL
      for (int line = 0; line < 8; ++line) {
        const bf16* const there = here + (depth + line) * 64 + (row % 64 / 8 ^ line) * 8;  // as copy_box swizzles them
        TESSERA_UNROLL
        for (int i = 0; i < of_lane; i += 2) {
          const Pair two = load_pair(there + i);
          sums[i] += two.first;
          sums[i + 1] += two.second;
        }
      }
    }
  }
  /// store(row of the tile, sum).
  template <class Store>
  TESSERA_DEVICE void store_all(int lane, Store store) const {
    TESSERA_UNROLL
    for (int i = 0; i < of_lane; ++i) store(lane * of_lane + i, sums[i]);
  }
};

struct StoreNothing {
  TESSERA_DEVICE void operator()(int, int, real) const {}
};

/// Where `shares` is not 0, a warp more sums each row of the left factor, whose lines run across the depth: the first
/// `shares` of the tiles with the same rows each sum some of the steps, for store_sum(which of them, row, sum). So many
/// pairs at once are loaded before the first of them is stored: fewer where each takes many registers.
template <int tile_rows, int tile_columns, int down, int teams, int steps, int cluster, bool left_deep, bool right_deep,
          int shares = 0, int pairs_at_once = 4, class Store, class StoreSum = StoreNothing>
TESSERA_DEVICE void warpgroup_product(int rows, int columns, int from, int to, const CUtensorMap& left, int left_third,
                                      int left_fourth, const CUtensorMap& right, int right_third, int right_fourth,
                                      Store store, StoreSum store_sum = {}) {
#if TESSERA_WARPGROUPS
  constexpr int my_rows = tile_rows / down, my_columns = tile_columns * down / 2, parts = my_rows / 64;
  constexpr int of_team = team_threads / 32, of_teams = teams * of_team;  // warps
  constexpr int right_at = tile_rows * warpgroup_depth, step = (tile_rows + tile_columns) * warpgroup_depth;
  static_assert(shares == 0 ||
                (!left_deep && cluster <= 2 && teams == 1));  // by whom rows are summed, they are brought
  static_assert(my_rows % 64 == 0 && my_columns % square_columns == 0);
  constexpr int across = cluster > 2 ? 2 : 1, over = cluster / across;  // blocks of a cluster
  using OfLeft = BoxesOf<tile_rows, left_deep, across>;
  using OfRight = BoxesOf<tile_columns, right_deep, over>;
  bf16* const factors = shared_tiles<bf16>();  // [steps, tile_rows and tile_columns, warpgroup_depth]
  real* const squares = reinterpret_cast<real*>(factors + steps * step);  // one for each warp that multiplies
  Gate* const full = reinterpret_cast<Gate*>(squares + of_teams * square_rows * square_columns);
  Gate* const empty = full + steps;
  Gate* const turns = empty + steps;  // one for each team, which opens when the other one has begun its last step
  const int warp = same_in_warp(thread_x() / 32);  // descriptors and roles are a warp's
  if (thread_x() == of_teams * 32) {
    prefetch_map(left);
    prefetch_map(right);
  }
  if (thread_x() == 0) {
    for (int i = 0; i < steps; ++i) {
      gate_begin(full + i, 1);
      gate_begin(empty + i, (across + over - 1) * of_team + (shares > 0));
    }
    for (int i = 0; teams > 1 && i < teams; ++i) gate_begin(turns + i, of_team);
    asynchronous_fence();
  }
  barrier_of_gates<cluster>();  // the gates are there

  constexpr int cluster_rows = over * tile_rows, cluster_columns = across * tile_columns;
  const int beside = (columns + cluster_columns - 1) / cluster_columns,
            tiles = (rows + cluster_rows - 1) / cluster_rows * beside;
  const int down_at = block_x() % cluster % over, across_at = block_x() % cluster / over;
  const int of_my_rows = ((across - 1) << over | 1) << down_at,
            of_my_columns = ((1 << over) - 1) << across_at * over,  // blocks of the cluster, a bit for each
      of_mine = of_my_rows | of_my_columns;                         // those that bring something for this one
  const auto row_of = [=](int at) { return at / beside * cluster_rows + down_at * tile_rows; };
  const auto column_of = [=](int at) { return at % beside * cluster_columns + across_at * tile_columns; };
  const int lane = thread_x() % 32;
  int place = 0;  // of the step
  if (warp == of_teams) {
    int parity = 1;
    for (int at = block_x() / cluster; lane == 0 && at < tiles; at += blocks_x() / cluster) {
      const int first_row = row_of(at), first_column = column_of(at);
      for (int begin = from; begin < to; begin += warpgroup_depth) {
        gate_wait(empty + place, parity);
        gate_expect(full + place, step * static_cast<int>(sizeof(bf16)));
        bf16* const tile = factors + place * step;
        OfLeft::bring(tile, left, full + place, across_at, of_my_rows, first_row, begin, left_third, left_fourth);
        OfRight::bring(tile + right_at, right, full + place, down_at, of_my_columns, first_column, begin, right_third,
                       right_fourth);
        place = place + 1 == steps ? 0 : place + 1;
        parity ^= place == 0;
      }
    }
  } else if (shares > 0 && warp > of_teams) {
    int parity = 0;
    for (int at = block_x() / cluster; at < tiles; at += blocks_x() / cluster) {
      const int first_row = row_of(at), share = at % beside;
      RowSums<tile_rows> of_rows;
      of_rows.begin();
      for (int begin = from, next = 0; begin < to; begin += warpgroup_depth) {
        gate_wait(full + place, parity);
        if (next == share) of_rows.add(factors + place * step, lane);
        warp_barrier();  // all lanes have read it
        if (lane == 0) gate_arrive<1>(empty + place, 0);
        next = next + 1 == shares ? 0 : next + 1;
        place = place + 1 == steps ? 0 : place + 1;
        parity ^= place == 0;
      }
      of_rows.store_all(lane, [=](int row, real sum) {
        if (share < shares && first_row + row < rows) store_sum(share, first_row + row, sum);
      });
    }
  } else {
    const int team = warp / of_team, in_team = warp / 4 % 2;
    const int my_row = in_team % down * my_rows, my_column = in_team / down * my_columns;
    real* const square = squares + warp * square_rows * square_columns;
    const auto give_back = [=](int behind) {
      if (of_mine >> lane & 1) gate_arrive<cluster>(empty + (behind == 0 ? steps : behind) - 1, lane);
    };
    int parity = 0, turn = team == 0;
    const auto pass_over = [&] {  // the steps of the other team's tile
      if constexpr (teams == 1) return;
      const int there = place + (to - from + warpgroup_depth - 1) / warpgroup_depth;
      parity ^= there / steps % 2;
      place = there % steps;
    };
    if (team > 0) pass_over();
    const int together = blocks_x() / cluster;  // one tile for each cluster; its teams take turns
    for (int at = block_x() / cluster + team * together; at < tiles; at += teams * together) {
      const int first_row = row_of(at), first_column = column_of(at);
      real sums[parts][my_columns / 2];
      TESSERA_UNROLL
      for (int i = 0; i < parts * my_columns / 2; ++i) sums[i / (my_columns / 2)][i % (my_columns / 2)] = 0;
      if constexpr (teams > 1) {
        gate_wait(turns + team, turn);
        turn ^= 1;
      }
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
        if (begin > from) give_back(place);
        place = place + 1 == steps ? 0 : place + 1;
        parity ^= place == 0;
      }
      if (teams > 1 && lane == 0) gate_arrive<1>(turns + (1 - team), 0);
      multiplications_wait<0>();
      if (from < to) give_back(place);
      pass_over();

      // Through shared memory, so that neighbouring lanes store neighbouring columns: a warp by itself, square by
      // square. Eights of columns change places by the row, so that what is written at once lies in different banks.
      constexpr int beside_each_other = my_columns / square_columns;
      TESSERA_ROLLED  // the instructions of eight rows are enough for the instruction cache
          for (int now = 0; now < parts * beside_each_other; ++now) {
        warp_barrier();  // of the square before, all is read
        TESSERA_UNROLL   // sums have names, which are known while compiling
            for (int i = 0; i < parts * beside_each_other; ++i) {
          if (i != now) continue;
          TESSERA_UNROLL
          for (int j = 0; j < square_columns / 2; j += 2) {
            const int row = lane / 4 + j / 2 % 2 * 8, column = ((j / 4 * 8) ^ (row % 4 * 8)) + lane % 4 * 2;
            const real* const two = sums[i / beside_each_other] + i % beside_each_other * (square_columns / 2) + j;
            *reinterpret_cast<Pair*>(square + row * square_columns + column) = {two[0], two[1]};
          }
        }
        warp_barrier();  // the square is there
        // A lane stores every row of a column or, where `store` takes both at once, every other row of two columns.
        constexpr bool pairs = std::is_invocable_v<Store, int, int, Pair>;
        constexpr int of_lane = pairs ? 2 : 1, lanes = square_columns / of_lane;
        const int row = first_row + my_row + now / beside_each_other * 64 + warp % 4 * 16,
                  mine = lane % lanes * of_lane,
                  column = first_column + my_column + now % beside_each_other * square_columns + mine;
        if (row < rows && column < columns)
          store_rows<square_rows, of_lane, pairs ? pairs_at_once : 8>(
              row, lane / lanes, rows, column,
              [=](int line) {
                const real* const there = square + line * square_columns + (mine ^ (line % 4 * 8));
                if constexpr (pairs)
                  return load_pair(there);
                else
                  return *there;
              },
              store);
      }
    }
  }
  cluster_barrier<cluster>();  // no block ends while another speaks to its gates
#endif
}
