/// What a score is in the tests: it knows its row and key.
TESSERA_DEVICE real test_score(int row, int key, real sum) {
  return sum * 0.25f + static_cast<real>((row + 3 * key) % 7) * 0.125f;
}
/// Attention of one head by device/attention.h: queries, keys and values in lines that are `line` numbers apart, p
/// [rows, keys], what is kept of each row [rows, 4], two numbers, and out [rows, width]. Included where an attention
/// is: the device's own, or one with a fault.
template <int warps, int most_keys, int width>
__global__ void attention_of_a_head(const bf16* queries, const bf16* keys, const bf16* values, int line, float* p,
                                    float* kept, float* out, int rows, int key_count) {
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
