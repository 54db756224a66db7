/// The block's sum of its threads' numbers, twice. Included where a block_sum is: the device's own, or one with a
/// fault.
inline __global__ void sum_twice(float* out) {
  const real x = static_cast<real>(thread_x());
  const real once = block_sum(x), again = block_sum(x);
  out[block_x() * threads() + thread_x()] = once + again;
}
/// The same over the block's warps, for each lane by itself.
inline __global__ void sum_over_warps_twice(float* out) {
  const real x = static_cast<real>(thread_x());
  const real once = sum_over_warps(x), again = sum_over_warps(x);
  out[block_x() * threads() + thread_x()] = once + again;
}
/// Sums over rows, and of twice the rows' numbers, by so many blocks: a warp takes one row after the other.
inline __global__ void sum_rows(const float* x, float* out, int rows, int length, int blocks) {
  const int padded = (length + 31) / 32 * 32, warps = threads() / 32;
  real* const sums = sums_of_warp(2 * padded);
  for (int row = block_x() * warps + thread_x() / 32; row < rows; row += blocks * warps)
    for (int d = thread_x() % 32; d < length; d += 32) {
      sums[d] += x[row * length + d];
      sums[padded + d] += 2 * x[row * length + d];
    }
  store_sums_of_warps(2 * padded, out + block_x() * 2 * padded);
}
