/// Attention's backward pass on tensor cores, one head a block: from p, the softmax that forward found, and the
/// gradient of what it mixed, the gradients of queries, keys and values. For dp the sum of the gradient's number at
/// (row, depth) times the value's one at (key, depth), and delta the row's sum of p dp, change(row, key, p, dp, delta)
/// is the gradient of the sum of products of a query and a key. That sum is made `again`: p is probability(row, key,
/// sum, kept(row)), of the same bits as forward's; or p is in memory, where probability(row, key) reads it.
/// store_query(row, column, sum of the changes of a row times the key's number), store_key(key, column, sum of the
/// changes of a key times the query's number) and store_value(key, column, sum of the p of a key times the gradient's
/// number). Factors are of bf16, p and changes among them; everything else is of single precision. The three may take
/// two neighbours at once, (row or key, column, first, second), or be in_eights.
///
/// query, key, value and gradient say where a number lies: `width` of them are neighbours in memory, and begin on a
/// multiple of 16 bytes. `most_keys`: `keys`, filled up to a multiple of 16. Each warp has 16 keys, and the sums of
/// their gradients in its registers, of at most 64 columns: for wider ones all is done once more. Queries come in
/// tiles, two while the one before them is worked on; the last one is half a tile where that is enough. Everything but
/// the gradients of queries is made with the keys as rows: what a thread has of such sums is what it needs of a left
/// factor. Shared memory: attention_gradient_bytes.
constexpr int gradient_queries = 32;  ///< of a tile
constexpr int attention_gradient_bytes(int most_keys, int width) {
  const int factors = 2 * most_keys * width + 3 * 2 * gradient_queries * width + most_keys * gradient_queries;
  const int padded_rows = (most_keys + gradient_queries - 1) / gradient_queries * gradient_queries;
  const int reals = 2 * (most_keys / 16 * gradient_queries) + 2 * padded_rows;
  return factors * static_cast<int>(sizeof(bf16)) + reals * static_cast<int>(sizeof(real));
}

/// Of each of eight numbers the sum over the lanes with the same lane % 4, that of number lane / 4.
TESSERA_DEVICE real sum_of_eight(real (&x)[8]) {
  const int mine = thread_x() % 32 / 4;
  TESSERA_UNROLL
  for (int half = 4; half > 0; half /= 2) {
    TESSERA_UNROLL
    for (int i = 0; i < half; ++i) {
      const real low = x[i], high = x[i + half];  // a choice between two places would put them on the stack
      x[i] = (mine & half ? high : low) + shuffle_xor(mine & half ? low : high, half * 4);
    }
  }
  return x[0];
}

/// A thread's number, of which the compiler is told that it is one: divisions of it are shifts.
TESSERA_DEVICE int below_1024(int thread) { return static_cast<int>(static_cast<unsigned>(thread) % 1024); }

/// Where a thread is. Asked for anew: there are too few registers to keep all addresses that follow from it. What is
/// the same in each `step`, a number below 2^20, ptxas would keep all the same.
struct PlaceInWarp {
  int warp, lane, in_matrix;
  int second, third;     ///< which of four matrices this lane names a line of
  int my_key, my_query;  ///< of its sums, whose rows are keys
  TESSERA_DEVICE static PlaceInWarp now(int step) {
    const int thread = static_cast<int>(static_cast<unsigned>(made_anew(thread_x()) + (made_anew(step) >> 20)) % 1024);
    const int lane = thread % 32;
    return {thread / 32, lane, lane % 8, lane / 8 % 2 * 8, lane / 16 * 8, thread / 32 * 16 + lane / 4, lane % 4 * 2};
  }
};

/// Where p is in memory.
struct KeptNothing {
  TESSERA_DEVICE OfRow operator()(int) const { return {0, 1}; }
};

/// Products of this warp's lines of a factor with all lines of a tile's: sums whose rows are keys. A lane names numbers
/// at `mine` and at `of_tile`; those further along the lines follow by exclusive or, as eights change places.
template <int width, int tile>
TESSERA_DEVICE void multiply_lines(real (&sums)[tile / 8][4], const bf16* left_lines, int mine, const bf16* right_lines,
                                   int of_tile) {
  TESSERA_UNROLL
  for (int i = 0; i < tile / 8 * 4; ++i) sums[i / 4][i % 4] = 0;
  TESSERA_UNROLL
  for (int depth = 0; depth < width; depth += 16) {
    std::uint32_t left[4], right[4];
    load_matrices(left, left_lines + (mine ^ depth));
    TESSERA_UNROLL
    for (int j = 0; j < tile / 16; ++j) {
      load_matrices(right, right_lines + (of_tile ^ depth) + j * 16 * width);
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
  constexpr int most_queries = gradient_queries, warps = most_keys / 16, block = warps * 32;
  constexpr int padded_rows = (most_keys + most_queries - 1) / most_queries * most_queries;
  constexpr int part = width < 64 ? width : 64;  // columns at a time
  constexpr int across = part / 16, most_squares = most_queries / 16 * across;
  // Tiles are brought by the warps that have no square of the queries' gradients, where there are any.
  constexpr int bringing = warps > most_squares ? block - most_squares * 32 : block;
  bf16* const key_lines = shared_memory<bf16>();
  bf16* const value_lines = key_lines + most_keys * width;
  bf16* const tiles = value_lines + most_keys * width;         // queries and gradients, three places of each
  bf16* const changes = tiles + 3 * 2 * most_queries * width;  // a line for each key
  real* const sums_of_warps = reinterpret_cast<real*>(changes + most_keys * most_queries);
  real* const deltas = sums_of_warps + block;  // of each warp by itself
  OfRow* const rows_of_head = reinterpret_cast<OfRow*>(deltas + block);
  const auto bring_tile = [&](int first, int place) {
    bf16* const there = tiles + place * 2 * most_queries * width;
    if (first < rows) {
      if (const int thread = below_1024(made_anew(thread_x())) - block + bringing; thread >= 0) {
        bring_lines<most_queries, width, bringing>(there, first, rows, query, thread);
        bring_lines<most_queries, width, bringing>(there + most_queries * width, first, rows, gradient, thread);
      }
    }
    copy_commit();
  };
  bring_lines<most_keys, width, block>(key_lines, 0, keys, key);
  bring_lines<most_keys, width, block>(value_lines, 0, keys, value);
  if constexpr (again)
    if (const int row = thread_x(); row < padded_rows)
      rows_of_head[row] = row < rows ? kept(row) : OfRow{INFINITY, 0};  // of those there are no p

  TESSERA_ROLLED
  for (int begin = 0; begin < width; begin += part) {
    if (begin > 0) barrier();  // nobody reads the last tile any more
    bring_tile(0, 0);
    bring_tile(most_queries, 1);
    copy_wait<1>();
    barrier();  // the first tile is there
    real of_key[part / 8][4], of_value[part / 8][4];
    TESSERA_UNROLL
    for (int i = 0; i < part / 8 * 4; ++i) of_key[i / 4][i % 4] = of_value[i / 4][i % 4] = 0;
    int place = 0;
    const auto work_on = [&](int first, auto count) {
      constexpr int tile = decltype(count)::value;
      const bf16* const queries = tiles + place * 2 * most_queries * width;
      const bf16* const gradients = queries + most_queries * width;
      place = place == 2 ? 0 : place + 1;
      PlaceInWarp me = PlaceInWarp::now(first);
      // Of a thread's sums for eight queries two are of one key, two of the key eight behind it.
      real p[tile / 8][4], dp[tile / 8][4];
      if constexpr (!again) {
        TESSERA_UNROLL
        for (int j = 0; j < tile / 8; ++j) {
          TESSERA_UNROLL
          for (int part = 0; part < 4; ++part) {
            const int at = me.my_key + part / 2 * 8, row = first + j * 8 + me.my_query + part % 2;
            p[j][part] = at < keys && row < rows ? probability(row, at) : real(0);
          }
        }
      }
      const int mine = swizzled<width>(me.warp * 16 + me.second + me.in_matrix, me.third),
                of_tile = swizzled<width>(me.third + me.in_matrix, me.second);
      multiply_lines<width, tile>(dp, value_lines, mine, gradients, of_tile);
      if constexpr (again) {
        multiply_lines<width, tile>(p, key_lines, mine, queries, of_tile);
        me = PlaceInWarp::now(first);
        TESSERA_UNROLL
        for (int j = 0; j < tile / 8; ++j) {
          const int row = first + j * 8 + me.my_query;
          const OfRow of_them[2] = {rows_of_head[row], rows_of_head[row + 1]};
          TESSERA_UNROLL
          for (int part = 0; part < 4; ++part)
            p[j][part] = probability(row + part % 2, me.my_key + part / 2 * 8, p[j][part], of_them[part % 2]);
        }
        if ((me.warp + 1) * 16 > keys) {  // no branch around what makes them
          TESSERA_UNROLL
          for (int i = 0; i < tile / 8 * 4; ++i)
            if (me.my_key + i % 4 / 2 * 8 >= keys) p[i / 4][i % 4] = 0;
        }
      }
      // A row's sum: over this warp's keys, then over the warps in their order.
      real sums[8] = {0, 0, 0, 0, 0, 0, 0, 0};
      TESSERA_UNROLL
      for (int i = 0; i < tile / 4; ++i)
        sums[i] = p[i / 2][i % 2] * dp[i / 2][i % 2] + p[i / 2][i % 2 + 2] * dp[i / 2][i % 2 + 2];
      sums_of_warps[thread_x()] = sum_of_eight(sums);
      const int of_columns = swizzled<width>(me.second + me.in_matrix, begin + me.third);
      TESSERA_UNROLL
      for (int j = 0; j < tile / 16; ++j) {
        std::uint32_t of_p[4];
        TESSERA_UNROLL
        for (int i = 0; i < 4; ++i)
          of_p[i] = rounded_pair(p[2 * j + i / 2][i % 2 * 2], p[2 * j + i / 2][i % 2 * 2 + 1]);
        TESSERA_UNROLL
        for (int k = 0; k < part / 16; ++k) {
          std::uint32_t right[4];
          load_matrices_transposed(right, gradients + (of_columns ^ (k * 16)) + j * 16 * width);
          multiply_add(of_value[2 * k], of_p, right);
          multiply_add(of_value[2 * k + 1], of_p, right + 2);
        }
      }
      barrier();  // the sums of all warps are there, and nobody reads the tile before this one any more, nor its
                  // changes
      me = PlaceInWarp::now(first);
      real sum = 0, delta[8];
      TESSERA_UNROLL
      for (int w = 0; w < warps; ++w) sum += sums_of_warps[w * 32 + me.lane];
      deltas[me.warp * 32 + me.my_query * 4 + me.lane / 4] = sum;  // beside each other, as lanes need eight
      warp_barrier();                                              // the sums of all lanes are there
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) delta[i] = deltas[me.warp * 32 + me.my_query * 4 + i];

      std::uint32_t of_changes[tile / 16][4];
      const auto make_changes = [&](auto all) {
        constexpr bool whole = decltype(all)::value;
        const int there = swizzled<most_queries>(me.my_key, me.my_query);
        TESSERA_UNROLL
        for (int j = 0; j < tile / 8; ++j) {
          TESSERA_UNROLL
          for (int half = 0; half < 2; ++half) {
            const int at = me.my_key + half * 8;
            real changed[2];
            TESSERA_UNROLL
            for (int i = 0; i < 2; ++i) {
              const int row = first + j * 8 + me.my_query + i;
              const bool inside = whole || (at < keys && row < rows);
              changed[i] =
                  inside ? change(row, at, p[j][half * 2 + i], dp[j][half * 2 + i], delta[j * 2 + i]) : real(0);
            }
            const std::uint32_t two = rounded_pair(changed[0], changed[1]);
            of_changes[j / 2][j % 2 * 2 + half] = two;
            *reinterpret_cast<std::uint32_t*>(changes + (there ^ (j * 8)) + half * 8 * most_queries) = two;
          }
        }
      };
      if (first + tile <= rows && (me.warp + 1) * 16 <= keys)
        make_changes(std::true_type());
      else
        make_changes(std::false_type());
      copy_wait<0>();
      barrier();  // the changes of all keys are there, and the next tile
      bring_tile(first + 2 * most_queries, place == 2 ? 0 : place + 1);
      me = PlaceInWarp::now(first);

      // The gradients of the tile's queries, squares of 16 by 16 of them: where there are fewer than warps, the others
      // go ahead.
      constexpr int squares = tile / 16 * across;
      TESSERA_UNROLL
      for (int round = 0; round < (squares + warps - 1) / warps; ++round) {
        const int square = round * warps + me.warp;
        if (square >= squares) continue;
        const int line = square / across * 16, column = begin + square % across * 16;
        const bf16* const lefts = changes + swizzled<most_queries>(me.third + me.in_matrix, line + me.second);
        const bf16* const rights = key_lines + swizzled<width>(me.second + me.in_matrix, column + me.third);
        real of_query[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        TESSERA_UNROLL
        for (int depth = 0; depth < most_keys; depth += 16) {
          std::uint32_t left[4], right[4];
          load_matrices_transposed(left, lefts + depth * most_queries);
          load_matrices_transposed(right, rights + depth * width);
          multiply_add(of_query[0], left, right);
          multiply_add(of_query[1], left, right + 2);
        }
        store_square<false>(store_query, first + line, rows, column, width, of_query[0], of_query[1], me.lane);
      }
      me = PlaceInWarp::now(first);
      const int of_columns_again = swizzled<width>(me.second + me.in_matrix, begin + me.third);
      TESSERA_UNROLL
      for (int j = 0; j < tile / 16; ++j) {
        TESSERA_UNROLL
        for (int k = 0; k < part / 16; ++k) {
          std::uint32_t right[4];
          load_matrices_transposed(right, queries + (of_columns_again ^ (k * 16)) + j * 16 * width);
          multiply_add(of_key[2 * k], of_changes[j], right);
          multiply_add(of_key[2 * k + 1], of_changes[j], right + 2);
        }
      }
    };
    int first = 0;
    TESSERA_ROLLED
    for (; first + most_queries / 2 < rows; first += most_queries)
      work_on(first, std::integral_constant<int, most_queries>());
    if (first < rows) work_on(first, std::integral_constant<int, most_queries / 2>());

    const PlaceInWarp me = PlaceInWarp::now(0);
    TESSERA_UNROLL
    for (int k = 0; k < part / 16; ++k) {
      const int column = begin + k * 16;
      store_square<false>(store_key, me.warp * 16, keys, column, width, of_key[2 * k], of_key[2 * k + 1], me.lane);
      store_square<false>(store_value, me.warp * 16, keys, column, width, of_value[2 * k], of_value[2 * k + 1],
                          me.lane);
    }
  }
}
