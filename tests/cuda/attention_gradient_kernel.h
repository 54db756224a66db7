/// The backward pass of one head by device/attention_gradient.h: queries, keys, values and the gradient in lines that
/// are `line` numbers apart, p and `scale` [rows, keys], gradients of queries [rows, width], and of keys and values
/// [keys, width]. Included where an attention_gradient is: the device's own, or one with a fault.
template <int most_keys, int width>
__global__ void __launch_bounds__(most_keys * 2)
    attention_gradient_of_a_head(const bf16* queries, const bf16* keys, const bf16* values, const bf16* gradients,
                                 int line, const float* p, const float* scale, float* of_queries, float* of_keys,
                                 float* of_values, int rows, int key_count) {
  attention_gradient<most_keys, width, false>(
      rows, key_count, [=](int row, int k) { return queries + row * line + k; },
      [=](int key, int k) { return keys + key * line + k; }, [=](int key, int k) { return values + key * line + k; },
      [=](int row, int k) { return gradients + row * line + k; }, KeptNothing(),
      [=](int row, int key) { return p[row * key_count + key]; },
      [=](int row, int key, real mine, real dp, real delta) {
        return mine * (dp - delta) * scale[row * key_count + key];
      },
      [=](int row, int k, real sum) { of_queries[row * width + k] = sum; },
      [=](int key, int k, real sum) { of_keys[key * width + k] = sum; },
      [=](int key, int k, real sum) { of_values[key * width + k] = sum; });
}
/// The same with p made again, of the scores of attention_kernel.h and of what its forward pass has kept [rows, 4]:
/// which is written to p.
template <int most_keys, int width>
__global__ void __launch_bounds__(most_keys * 2)
    attention_again_of_a_head(const bf16* queries, const bf16* keys, const bf16* values, const bf16* gradients,
                              int line, const float* kept, float* p, const float* scale, float* of_queries,
                              float* of_keys, float* of_values, int rows, int key_count) {
  attention_gradient<most_keys, width, true>(
      rows, key_count, [=](int row, int k) { return queries + row * line + k; },
      [=](int key, int k) { return keys + key * line + k; }, [=](int key, int k) { return values + key * line + k; },
      [=](int row, int k) { return gradients + row * line + k; },
      [=](int row) { return of_row(kept[row * 4], kept[row * 4 + 1]); },
      [=](int row, int key, real sum, OfRow of_it) { return in_bf16(share_of(test_score(row, key, sum), of_it)); },
      [=](int row, int key, real mine, real dp, real delta) {
        p[row * key_count + key] = mine;
        return mine * (dp - delta) * scale[row * key_count + key];
      },
      [=](int row, int k, real sum) { of_queries[row * width + k] = sum; },
      [=](int key, int k, real sum) { of_keys[key * width + k] = sum; },
      [=](int key, int k, real sum) { of_values[key * width + k] = sum; });
}
