/// What a score is in the tests: it knows its row and key.
TESSERA_DEVICE real test_score(int row, int key, real sum) {
  return sum * 0.25f + static_cast<real>((row + 3 * key) % 7) * 0.125f;
}
/// Attention of one head by device/attention.h: queries, keys and values in lines that are `line` numbers apart, p
/// [rows, keys], what is kept of each row [rows, 4], two numbers, and out [rows, width]. Included where an attention
/// is: the device's own, or one with a fault.
template <int warps, int most_keys, int width>
__global__ void __launch_bounds__(warps * 32)
    attention_of_a_head(const bf16* queries, const bf16* keys, const bf16* values, int line, float* p, float* kept,
                        float* out, int rows, int key_count) {
  attention<warps, most_keys, width>(
      rows, key_count, [=](int row, int k) { return queries + row * line + k; },
      [=](int key, int k) { return keys + key * line + k; },
      [=](int row, int key, real sum) { return test_score(row, key, sum); },
      [=](int row, int key, real value) { p[row * key_count + key] = value; },
      [=](int row, OfRow of_it) {
        kept[row * 4] = of_it.most;
        kept[row * 4 + 1] = of_it.inverse;
      },
      [=](int key, int k) { return values + key * line + k; },
      [=](int row, int k, real sum, real next) {
        out[row * width + k] = sum;
        out[row * width + k + 1] = next;
      });
}
/// A warp's sums of 16 rows and 16 columns, eight numbers of each lane, by store_square: to `pairs` [rows, 16] two at
/// once, to `singles` [rows, columns] and, plus a number of the row, to `eights` [rows, whole eights of columns].
/// Included where a store_square is.
inline __global__ void store_a_square(const float* sums, const float* of_rows, float* singles, float* pairs,
                                      bf16* eights, int rows, int columns) {
  real left[4], right[4];
  for (int i = 0; i < 4; ++i) {
    left[i] = sums[thread_x() * 8 + i];
    right[i] = sums[thread_x() * 8 + 4 + i];
  }
  const auto store = [&](auto how) { store_square<true>(how, 0, rows, 0, columns, left, right, thread_x()); };
  store([=](int row, int column, real sum) { singles[row * columns + column] = sum; });
  store([=](int row, int column, real sum, real next) {
    pairs[row * 16 + column] = sum;
    pairs[row * 16 + column + 1] = next;
  });
  const int line = (columns + 7) / 8 * 8;
  store(in_eights(
      [=](int row, int, real sum, real next) { return rounded_pair(sum + of_rows[row], next + of_rows[row]); },
      [=](int row, int column) { return eights + (row * line + column); }));
}
