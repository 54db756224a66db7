/// Attention's forward pass on tensor cores, one head a block, or several: store(row, column, sum of p(row, key) times
/// the value's number at (key, column)) for p the softmax of a row's scores, in two passes over it; and save(row, key,
/// p), or keep(row, what the row's p follow from). A score is score(row, key, sum of the query's number at (row, depth)
/// times the key's one at (key, depth)). Factors are of bf16, p among them; everything else is of single precision.
/// store and save may take two neighbours at once, (row, column, first, second), or be in_eights.
///
/// query, key and value say where a number lies: `width` of them are neighbours in memory, and begin on a multiple of
/// 16 bytes. `most_keys`: `keys`, filled up to a multiple of 16. A block brings keys and values once. Its warps go
/// through tiles of 16 queries, each at its own pace, with all scores of a tile in a warp's registers; the warp's next
/// queries come while it has the present ones' scores. All blocks along x share the tiles: attention_shares says how
/// many are the fastest. Of a tile the same bits come from any of them. Shared memory: attention_bytes.
constexpr int attention_bytes(int warps, int most_keys, int width) {
  return (warps * 16 + 2 * most_keys) * width * static_cast<int>(sizeof(bf16));
}

/// Lines of a factor in shared memory; those behind the last one are zeros. They are there when they have been waited
/// for.
template <int lines, int width, int block, class Factor>
TESSERA_DEVICE void bring_lines(bf16* tile, int first, int count, Factor factor, int thread = thread_x()) {
  constexpr int all = lines * (width / 8);
  TESSERA_UNROLL
  for (int begin = 0; begin < all; begin += block) {  // so many times: known, however many threads there are
    const int at = begin + thread;
    if (begin + block > all && at >= all) continue;
    const int line = at / (width / 8), place = at % (width / 8) * 8;
    copy_async(tile + swizzled<width>(line, place), factor(first + line, place), first + line < count ? 16 : 0);
  }
}
/// Two neighbours in memory, by one store of 32 bits.
TESSERA_DEVICE void store_pair(bf16* to, real first, real second) {
  *reinterpret_cast<std::uint32_t*>(to) = rounded_pair(first, second);
}
/// Where eight neighbours are stored at once: word(row, column, first, second) is two of them as bf16, place(row,
/// column) where eight lie, from a multiple of 16 bytes on.
template <class Word, class Place>
struct InEights {
  Word word;
  Place place;
};
template <class Word, class Place>
TESSERA_DEVICE InEights<Word, Place> in_eights(Word word, Place place) {
  return {word, place};
}
/// Hands on two neighbours of a row: at once to what takes both, else one by one.
template <class Store>
TESSERA_DEVICE void store_two(Store store, int row, int column, real first, real second) {
  if constexpr (requires { store(row, column, first, second); }) {
    store(row, column, first, second);
  } else {
    store(row, column, first);
    store(row, column + 1, second);
  }
}
/// Of four neighbouring lanes with four words each: words j become those of lane j, one from each.
TESSERA_DEVICE void transpose_words(std::uint32_t (&words)[4], int lane) {
  TESSERA_UNROLL
  for (int bit = 1; bit < 4; bit *= 2) {
    TESSERA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i & bit) continue;
      const std::uint32_t other = shuffle_xor(lane & bit ? words[i] : words[i + bit], bit);
      words[i] = lane & bit ? other : words[i];
      words[i + bit] = lane & bit ? words[i + bit] : other;
    }
  }
}
/// Hands on a warp's sums of 16 rows from `first` on and 16 columns from `column` on, as multiply_add has those of
/// eight columns: one by one or, to what takes them so, two or eight at once. Who takes more than one has room for
/// those past the last of `columns` in a two or an eight that begins before it.
template <bool cut, class Store>
TESSERA_DEVICE void store_square(Store store, int first, int rows, int column, int columns, const real (&left)[4],
                                 const real (&right)[4], int lane) {
  const int row = first + lane / 4, pair = column + lane % 4 * 2;
  if constexpr (requires { store.place(row, column); }) {
    const int upper = row < rows ? row : rows - 1, lower = row + 8 < rows ? row + 8 : rows - 1;
    std::uint32_t words[4] = {
        store.word(upper, pair, left[0], left[1]), store.word(upper, pair + 8, right[0], right[1]),
        store.word(lower, pair, left[2], left[3]), store.word(lower, pair + 8, right[2], right[3])};
    transpose_words(words, lane);
    const int its_row = row + lane % 4 / 2 * 8, its_column = column + lane % 2 * 8;
    if (its_row < rows && (!cut || its_column < columns)) store_16_bytes(store.place(its_row, its_column), words);
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < 8; i += 2) {
      const int at = row + i / 2 % 2 * 8, begin = pair + i / 4 * 8;
      if (at >= rows || (cut && begin >= columns)) continue;
      const real one = i < 4 ? left[i % 4] : right[i % 4], other = i < 4 ? left[i % 4 + 1] : right[i % 4 + 1];
      if constexpr (requires { store(at, begin, one, other); }) {
        store(at, begin, one, other);
      } else {
        store(at, begin, one);
        if (!cut || begin + 1 < columns) store(at, begin + 1, other);
      }
    }
  }
}

/// Of a row of scores the largest, and one over the sum of the exponentials of what they lack to it.
struct OfRow {
  real most, inverse;
};
TESSERA_DEVICE OfRow of_row(real most, real inverse) { return {most, inverse}; }
/// What the sum is made of. The same bits wherever it is computed: nothing is joined to what makes the score.
TESSERA_DEVICE real exponential_of(real score, real most) {
  return power_of_two(difference(score, most) * real(1.4426950408889634));
}
TESSERA_DEVICE real share_of(real score, OfRow row) { return exponential_of(score, row.most) * row.inverse; }

/// Where nobody reads p, and where nobody computes it again.
struct SaveNothing {
  TESSERA_DEVICE void operator()(int, int, real) const {}
};
struct KeepNothing {
  TESSERA_DEVICE void operator()(int, OfRow) const {}
};

/// Which line of four matrices a lane names. Asked for anew: there are too few registers to keep all addresses that
/// follow from it.
struct LaneOfMatrices {
  int lane, in_matrix, second, third;
  TESSERA_DEVICE static LaneOfMatrices now() {
    const int lane = made_anew(thread_x()) % 32;
    return {lane, lane % 8, lane / 8 % 2 * 8, lane / 16 * 8};
  }
};

template <int warps, int most_keys, int width, class Query, class Key, class Score, class Save, class Keep, class Value,
          class Store>
TESSERA_DEVICE void attention(int rows, int keys, Query query, Key key, Score score, Save save, Keep keep, Value value,
                              Store store) {
  constexpr int block = warps * 32, tile = 16;
  const int warp = thread_x() / 32;
  bf16* const key_lines = shared_memory<bf16>();
  bf16* const value_lines = key_lines + most_keys * width;
  bf16* const queries = value_lines + most_keys * width + warp * tile * width;  // of this warp alone
  // The warps of a head that have a tile more than the others are other ones in the next head.
  int first_row = (block_x() * warps + (warp + block_z()) % warps) * tile;
  bring_lines<tile, width, 32>(queries, first_row, rows, query, thread_x() % 32);
  bring_lines<most_keys, width, block>(key_lines, 0, keys, key);
  copy_commit();
  bring_lines<most_keys, width, block>(value_lines, 0, keys, value);
  copy_commit();
  copy_wait<1>();
  barrier();  // keys are there, and a warp's queries

  bool first = true;
  do {  // a warp without a tile takes one past the end
    LaneOfMatrices me = LaneOfMatrices::now();
    real p[most_keys / 8][4];
    TESSERA_UNROLL
    for (int i = 0; i < most_keys / 8 * 4; ++i) p[i / 4][i % 4] = 0;
    TESSERA_UNROLL
    for (int depth = 0; depth < width; depth += 16) {
      std::uint32_t of_queries[4], of_keys[4];
      load_matrices(of_queries, queries + swizzled<width>(me.second + me.in_matrix, depth + me.third));
      TESSERA_UNROLL
      for (int j = 0; j < most_keys / 16; ++j) {
        load_matrices(of_keys, key_lines + swizzled<width>(j * 16 + me.third + me.in_matrix, depth + me.second));
        multiply_add(p[2 * j], of_queries, of_keys);
        multiply_add(p[2 * j + 1], of_queries, of_keys + 2);
      }
    }

    warp_barrier();  // nobody reads these queries any more
    const int next_row = first_row + blocks_x() * warps * tile;
    if (next_row < rows) bring_lines<tile, width, 32>(queries, next_row, rows, query, me.lane);
    copy_commit();

    // A thread has numbers of two rows, eight apart, which three other lanes share.
    me = LaneOfMatrices::now();
    const int lane = me.lane, my_row = first_row + lane / 4;
    real most[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
    TESSERA_UNROLL
    for (int j = 0; j < most_keys / 8; ++j) {
      TESSERA_UNROLL
      for (int part = 0; part < 4; ++part) {
        const int row = my_row + part / 2 * 8, column = j * 8 + lane % 4 * 2 + part % 2;
        p[j][part] = column < keys ? score(row < rows ? row : rows - 1, column, p[j][part]) : -INFINITY;
        most[part / 2] = larger(most[part / 2], p[j][part]);
      }
    }
    TESSERA_UNROLL
    for (int half = 0; half < 2; ++half) {
      most[half] = larger(most[half], shuffle_xor(most[half], 1));
      most[half] = larger(most[half], shuffle_xor(most[half], 2));
    }
    TESSERA_UNROLL
    for (int j = 0; j < most_keys / 8; ++j) {
      TESSERA_UNROLL
      for (int part = 0; part < 4; ++part) {
        p[j][part] = exponential_of(p[j][part], most[part / 2]);
        sums[part / 2] += p[j][part];
      }
    }
    TESSERA_UNROLL
    for (int half = 0; half < 2; ++half) {
      sums[half] += shuffle_xor(sums[half], 1);
      sums[half] += shuffle_xor(sums[half], 2);
      sums[half] = 1 / sums[half];
      const int row = my_row + half * 8;
      if (lane % 4 == 0 && row < rows) keep(row, OfRow{most[half], sums[half]});
    }
    TESSERA_UNROLL
    for (int j = 0; j < most_keys / 16; ++j) {
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) p[2 * j + i / 4][i % 4] *= sums[i / 2 % 2];
      store_square<true>(save, first_row, rows, j * 16, keys, p[2 * j], p[2 * j + 1], lane);
    }

    if (first) {
      copy_wait<1>();
      barrier();  // values are there
    }
    me = LaneOfMatrices::now();
    real out[width / 8][4];
    TESSERA_UNROLL
    for (int i = 0; i < width / 8 * 4; ++i) out[i / 4][i % 4] = 0;
    TESSERA_UNROLL
    for (int j = 0; j < most_keys / 16; ++j) {
      // What a thread has of the sums is what it needs of a left factor.
      const std::uint32_t of_p[4] = {rounded_pair(p[2 * j][0], p[2 * j][1]), rounded_pair(p[2 * j][2], p[2 * j][3]),
                                     rounded_pair(p[2 * j + 1][0], p[2 * j + 1][1]),
                                     rounded_pair(p[2 * j + 1][2], p[2 * j + 1][3])};
      std::uint32_t of_values[4];
      TESSERA_UNROLL
      for (int k = 0; k < width / 16; ++k) {
        load_matrices_transposed(of_values,
                                 value_lines + swizzled<width>(j * 16 + me.second + me.in_matrix, k * 16 + me.third));
        multiply_add(out[2 * k], of_p, of_values);
        multiply_add(out[2 * k + 1], of_p, of_values + 2);
      }
    }
    TESSERA_UNROLL
    for (int k = 0; k < width / 16; ++k)
      store_square<false>(store, first_row, rows, k * 16, width, out[2 * k], out[2 * k + 1], lane);
    copy_wait<0>();
    warp_barrier();  // the next queries are there
    first = false;
    first_row = next_row;
  } while (first_row < rows);
}
