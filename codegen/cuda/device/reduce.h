// Sums and maxima across lanes and threads, always in the same order. Every lane gets the result.
TESSERA_DEVICE real warp_sum(real x) {
  for (int bits = 16; bits > 0; bits /= 2) x += shuffle_xor(x, bits);
  return x;
}
TESSERA_DEVICE real warp_maximum(real x) {
  for (int bits = 16; bits > 0; bits /= 2) x = larger(x, shuffle_xor(x, bits));
  return x;
}

/// Over all threads of a block. Shared memory: one real a warp.
TESSERA_DEVICE real block_sum(real x) {
  real* const of_warp = shared_memory<real>();
  x = warp_sum(x);
  if (thread_x() % 32 == 0) of_warp[thread_x() / 32] = x;
  barrier();
  real all = 0;
  for (int warp = 0; warp < threads() / 32; ++warp) all += of_warp[warp];
  barrier();  // the next reduction writes where this one was read
  return all;
}
TESSERA_DEVICE real block_maximum(real x) {
  real* const of_warp = shared_memory<real>();
  x = warp_maximum(x);
  if (thread_x() % 32 == 0) of_warp[thread_x() / 32] = x;
  barrier();
  real all = of_warp[0];
  for (int warp = 1; warp < threads() / 32; ++warp) all = larger(all, of_warp[warp]);
  barrier();
  return all;
}

/// Over the warps of a block, or over its groups of so many threads, in their order and for each lane by itself. Shared
/// memory: one real a thread.
template <int lanes = 32>
TESSERA_DEVICE real sum_over_warps(real x) {
  real* const of_thread = shared_memory<real>();
  of_thread[thread_x()] = x;
  barrier();
  real all = 0;
  for (int at = thread_x() % lanes; at < threads(); at += lanes) all += of_thread[at];
  barrier();
  return all;
}
TESSERA_DEVICE real maximum_over_warps(real x) {
  real* const of_thread = shared_memory<real>();
  of_thread[thread_x()] = x;
  barrier();
  real all = of_thread[thread_x() % 32];
  for (int at = thread_x() % 32 + 32; at < threads(); at += 32) all = larger(all, of_thread[at]);
  barrier();
  return all;
}

/// Sums that a warp goes on with, in shared memory: so many reals for each warp. A lane begins, and may add to, those
/// whose place is its own, a multiple of 32 further on.
TESSERA_DEVICE real* sums_of_warp(int count) {
  real* const mine = shared_memory<real>() + thread_x() / 32 * count;
  for (int at = thread_x() % 32; at < count; at += 32) mine[at] = 0;
  return mine;
}
/// Those of all warps of the block together, in their order.
TESSERA_DEVICE void store_sums_of_warps(int count, real* to) {
  const real* const sums = shared_memory<real>();
  barrier();  // the sums of all warps are there
  for (int at = thread_x(); at < count; at += threads()) {
    real all = 0;
    for (int warp = 0; warp < threads() / 32; ++warp) all += sums[warp * count + at];
    to[at] = all;
  }
}
/// All of so many steps, so many at once, none of which waits for another of these.
template <int steps, int at_once, class F>
TESSERA_DEVICE void unrolled(const F& f) {
  TESSERA_ROLLED
  for (int first = 0; first < steps; first += at_once) {
    TESSERA_UNROLL
    for (int step = first; step < first + at_once; ++step) f(step);
  }
}
