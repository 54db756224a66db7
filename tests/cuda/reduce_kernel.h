/// The block's sum of its threads' numbers, twice. Included where a block_sum is: the device's own, or one with a
/// fault.
__global__ void sum_twice(float* out) {
  const real x = static_cast<real>(thread_x());
  const real once = block_sum(x), again = block_sum(x);
  out[block_x() * threads() + thread_x()] = once + again;
}
/// The same over the block's warps, for each lane by itself.
__global__ void sum_over_warps_twice(float* out) {
  const real x = static_cast<real>(thread_x());
  const real once = sum_over_warps(x), again = sum_over_warps(x);
  out[block_x() * threads() + thread_x()] = once + again;
}
