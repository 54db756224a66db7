/// Attention's backward pass on tensor cores, one head a block: from p, the softmax that forward found, and the
/// gradient of what it mixed, the gradients of queries, keys and values. For dp the sum of the gradient's number at
/// (row, depth) times the value's one at (key, depth), and delta the row's sum of p dp, change(row, key, p, dp, delta)
/// is the gradient of the sum of products of a query and a key. That sum is made `again`: p is probability(row, key,
/// sum, kept(row)), of the same bits as forward's; or p is in memory, where probability(row, key) reads it.
/// store_query(row, column, sum of the changes of a row times the key's number), store_key(key, column, sum of the
/// changes of a key times the query's number) and store_value(key, column, sum of the p of a key times the gradient's
/// number). Factors are of bf16, p and changes among them; everything else is of single precision. The three may take
/// two neighbours at once: (row or key, column, first, second).
///
/// query, key, value and gradient say where a number lies: `width` of them are neighbours in memory, and begin on a
/// multiple of 16 bytes. `most_keys`: `keys`, filled up to a multiple of 16. Each warp has 16 keys, and the sums of
/// their gradients in its registers, of at most 64 columns: for wider ones all is done once more. Queries come in
/// tiles, one while the one before it is worked on. Everything but the gradients of queries is made with the keys as
/// rows: what a thread has of such sums is what it needs of a left factor. Shared memory: attention_gradient_bytes.
constexpr int gradient_queries = 32;  ///< of a tile
constexpr int attention_gradient_bytes(int most_keys, int width) {
  const int factors = 2 * most_keys * width + 2 * 2 * gradient_queries * width + most_keys * gradient_queries;
  const int padded_rows = (most_keys + gradient_queries - 1) / gradient_queries * gradient_queries;
  const int reals = most_keys / 16 * gradient_queries + 2 * padded_rows;
  return factors * static_cast<int>(sizeof(bf16)) + reals * static_cast<int>(sizeof(real));
}

/// Of each of eight numbers the sum over the lanes with the same lane % 4, that of number lane / 4.
TESSERA_DEVICE real sum_of_eight(real (&x)[8]) {
  const int mine = thread_x() % 32 / 4;
  TESSERA_UNROLL
  for (int half = 4; half > 0; half /= 2) {
    TESSERA_UNROLL
    for (int i = 0; i < half; ++i) {
      const real other = shuffle_xor(mine & half ? x[i] : x[i + half], half * 4);
      x[i] = (mine & half ? x[i + half] : x[i]) + other;
    }
  }
  return x[0];
}
/// The other way round: of each lane with the same lane % 4 its number x[0], in the order of lane / 4.
TESSERA_DEVICE void gather_eight(real (&x)[8]) {
  const int mine = thread_x() % 32 / 4;
  TESSERA_UNROLL
  for (int half = 1; half < 8; half *= 2) {
    TESSERA_UNROLL
    for (int i = 0; i < half; ++i) {
      const real own = x[i], other = shuffle_xor(own, half * 4);
      x[i] = mine & half ? other : own;
      x[i + half] = mine & half ? own : other;
    }
  }
}

/// Where a thread is. Asked for anew: there are too few registers to keep all addresses that follow from it.
struct PlaceInWarp {
  int warp, lane, in_matrix;
  int second, third;     ///< which of four matrices this lane names a line of
  int my_key, my_query;  ///< of its sums, whose rows are keys
  TESSERA_DEVICE static PlaceInWarp now() {
    const int thread = made_anew(thread_x()), lane = thread % 32;
    return {thread / 32, lane, lane % 8, lane / 8 % 2 * 8, lane / 16 * 8, thread / 32 * 16 + lane / 4, lane % 4 * 2};
  }
};

/// Where p is in memory.
struct KeptNothing {
  TESSERA_DEVICE OfRow operator()(int) const { return {0, 1}; }
};

/// Products of this warp's lines of a factor with all lines of a tile's: sums whose rows are keys.
template <int width, int tile>
TESSERA_DEVICE void multiply_lines(real (&sums)[tile / 8][4], const bf16* lines, const bf16* of_tile, PlaceInWarp me) {
  TESSERA_UNROLL
  for (int i = 0; i < tile / 8 * 4; ++i) sums[i / 4][i % 4] = 0;
  TESSERA_UNROLL
  for (int depth = 0; depth < width; depth += 16) {
    std::uint32_t left[4], right[4];
    load_matrices(left, lines + swizzled<width>(me.warp * 16 + me.second + me.in_matrix, depth + me.third));
    TESSERA_UNROLL
    for (int j = 0; j < tile / 16; ++j) {
      load_matrices(right, of_tile + swizzled<width>(j * 16 + me.third + me.in_matrix, depth + me.second));
      multiply_add(sums[2 * j], left, right);
      multiply_add(sums[2 * j + 1], left, right + 2);
    }
  }
}

template <int most_keys, int width, bool again, class Query, class Key, class Value, class Gradient, class Kept,
          class Probability, class Change, class StoreQuery, class StoreKey, class StoreValue>
TESSERA_DEVICE void attention_gradient(int rows, int keys, Query query, Key key, Value value, Gradient gradient,
                                       Kept kept, Probability probability, Change change, StoreQuery store_query,
                                       StoreKey store_key, StoreValue store_value) {
  constexpr int tile = gradient_queries, warps = most_keys / 16, block = warps * 32;
  constexpr int padded_rows = (most_keys + tile - 1) / tile * tile;
  constexpr int part = width < 64 ? width : 64;  // columns at a time
  bf16* const key_lines = shared_memory<bf16>();
  bf16* const value_lines = key_lines + most_keys * width;
  bf16* const tiles = value_lines + most_keys * width;  // queries and gradients, two places of each
  bf16* const changes = tiles + 2 * 2 * tile * width;   // a line for each key
  real* const sums_of_warps = reinterpret_cast<real*>(changes + most_keys * tile);
  OfRow* const rows_of_head = reinterpret_cast<OfRow*>(sums_of_warps + block);
  auto bring_tile = [&](int first, int place) {
    bf16* const there = tiles + place * 2 * tile * width;
    bring_lines<tile, width, block>(there, first, rows, query, made_anew(thread_x()));
    bring_lines<tile, width, block>(there + tile * width, first, rows, gradient, made_anew(thread_x()));
  };
  bring_lines<most_keys, width, block>(key_lines, 0, keys, key);
  bring_lines<most_keys, width, block>(value_lines, 0, keys, value);
  bring_tile(0, 0);
  copy_commit();
  if constexpr (again)
    for (int row = thread_x(); row < padded_rows; row += block)
      rows_of_head[row] = row < rows ? kept(row) : OfRow{INFINITY, 0};  // of those there are no p

  TESSERA_ROLLED
  for (int begin = 0; begin < width; begin += part) {
    if (begin > 0) {
      barrier();  // nobody reads the last tile any more
      bring_tile(0, 0);
      copy_commit();
    }
    real of_key[part / 8][4], of_value[part / 8][4];
    TESSERA_UNROLL
    for (int i = 0; i < part / 8 * 4; ++i) of_key[i / 4][i % 4] = of_value[i / 4][i % 4] = 0;
    for (int first = 0, other = 0; first < rows; first += tile, other ^= 1) {
      const int place = again ? first / tile % 2 : other;  // there it is a register more
      PlaceInWarp me = PlaceInWarp::now();
      // Of a thread's sums for eight queries two are of one key, two of the key eight behind it.
      real p[tile / 8][4], dp[tile / 8][4];
      if constexpr (!again) {  // it comes while the tile does
        TESSERA_UNROLL
        for (int j = 0; j < tile / 8; ++j) {
          TESSERA_UNROLL
          for (int part = 0; part < 4; ++part) {
            const int at = me.my_key + part / 2 * 8, row = first + j * 8 + me.my_query + part % 2;
            p[j][part] = at < keys && row < rows ? probability(row, at) : real(0);
          }
        }
      }
      copy_wait<0>();
      barrier();  // the tile is there, and nobody reads the one before it any more, nor its changes
      me = PlaceInWarp::now();
      const bf16* const queries = tiles + place * 2 * tile * width;
      const bf16* const gradients = queries + tile * width;

      multiply_lines<width, tile>(dp, value_lines, gradients, me);
      if constexpr (again) {
        multiply_lines<width, tile>(p, key_lines, queries, me);
        TESSERA_UNROLL
        for (int j = 0; j < tile / 8; ++j) {
          TESSERA_UNROLL
          for (int i = 0; i < 2; ++i) {
            me = PlaceInWarp::now();
            const int row = first + j * 8 + me.my_query + i;
            const OfRow of_it = rows_of_head[row];
            TESSERA_UNROLL
            for (int part = i; part < 4; part += 2) {
              const int at = me.my_key + part / 2 * 8;
              const real found = probability(row, at, p[j][part], of_it);  // no branch around it
              p[j][part] = at < keys && row < rows ? found : real(0);
            }
          }
        }
      }
      // A row's sum: over this warp's keys, then over the warps in their order.
      real sums[8];
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i)
        sums[i] = p[i / 2][i % 2] * dp[i / 2][i % 2] + p[i / 2][i % 2 + 2] * dp[i / 2][i % 2 + 2];
      sums_of_warps[thread_x()] = sum_of_eight(sums);
      barrier();  // the sums of all warps are there
      me = PlaceInWarp::now();
      sums[0] = 0;
      TESSERA_UNROLL
      for (int w = 0; w < warps; ++w) sums[0] += sums_of_warps[w * 32 + me.lane];
      gather_eight(sums);

      std::uint32_t of_p[tile / 16][4], of_changes[tile / 16][4];
      TESSERA_UNROLL
      for (int j = 0; j < tile / 8; ++j) {
        TESSERA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int at = me.my_key + half * 8;
          real changed[2];
          TESSERA_UNROLL
          for (int i = 0; i < 2; ++i) {
            const int row = first + j * 8 + me.my_query + i;
            const real mine = p[j][half * 2 + i], its = dp[j][half * 2 + i], delta = sums[j * 2 + i];
            changed[i] = at < keys && row < rows ? change(row, at, mine, its, delta) : real(0);
          }
          const std::uint32_t two = rounded_pair(changed[0], changed[1]);
          of_changes[j / 2][j % 2 * 2 + half] = two;
          of_p[j / 2][j % 2 * 2 + half] = rounded_pair(p[j][half * 2], p[j][half * 2 + 1]);
          *reinterpret_cast<std::uint32_t*>(changes + swizzled<tile>(at, j * 8 + me.my_query)) = two;
        }
      }
      barrier();  // the changes of all keys are there
      if (first + tile < rows) bring_tile(first + tile, again ? 1 - first / tile % 2 : other ^ 1);
      copy_commit();
      me = PlaceInWarp::now();

      // The gradients of the tile's queries, squares of 16 by 16 of them: where there are fewer than warps, the others
      // go ahead.
      constexpr int across = part / 16, squares = tile / 16 * across;
      TESSERA_UNROLL
      for (int round = 0; round < (squares + warps - 1) / warps; ++round) {
        const int square = round * warps + me.warp;
        if (square >= squares) continue;
        const int line = square / across * 16, column = begin + square % across * 16;
        real of_query[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        TESSERA_UNROLL
        for (int depth = 0; depth < most_keys; depth += 16) {
          std::uint32_t left[4], right[4];
          load_matrices_transposed(left, changes + swizzled<tile>(depth + me.third + me.in_matrix, line + me.second));
          load_matrices_transposed(right,
                                   key_lines + swizzled<width>(depth + me.second + me.in_matrix, column + me.third));
          multiply_add(of_query[0], left, right);
          multiply_add(of_query[1], left, right + 2);
        }
        TESSERA_UNROLL
        for (int i = 0; i < 8; i += 2) {
          const int row = first + line + me.lane / 4 + i / 2 % 2 * 8;
          if (row < rows)
            store_two(store_query, row, column + i / 4 * 8 + me.lane % 4 * 2, of_query[i / 4][i % 4],
                      of_query[i / 4][i % 4 + 1]);
        }
      }
      me = PlaceInWarp::now();
      TESSERA_UNROLL
      for (int j = 0; j < tile / 16; ++j) {
        TESSERA_UNROLL
        for (int k = 0; k < part / 16; ++k) {
          const int there = swizzled<width>(j * 16 + me.second + me.in_matrix, begin + k * 16 + me.third);
          std::uint32_t right[4];
          load_matrices_transposed(right, gradients + there);
          multiply_add(of_value[2 * k], of_p[j], right);
          multiply_add(of_value[2 * k + 1], of_p[j], right + 2);
          load_matrices_transposed(right, queries + there);
          multiply_add(of_key[2 * k], of_changes[j], right);
          multiply_add(of_key[2 * k + 1], of_changes[j], right + 2);
        }
      }
    }
    const PlaceInWarp me = PlaceInWarp::now();
    TESSERA_UNROLL
    for (int k = 0; k < part / 8; ++k) {
      TESSERA_UNROLL
      for (int half = 0; half < 4; half += 2) {
        const int at = me.my_key + half / 2 * 8, column = begin + k * 8 + me.lane % 4 * 2;
        if (at < keys) {
          store_two(store_key, at, column, of_key[k][half], of_key[k][half + 1]);
          store_two(store_value, at, column, of_value[k][half], of_value[k][half + 1]);
        }
      }
    }
  }
}
