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

/// Over the warps of a block, in their order and for each lane by itself. Shared memory: one real a thread.
TESSERA_DEVICE real sum_over_warps(real x) {
  real* const of_thread = shared_memory<real>();
  of_thread[thread_x()] = x;
  barrier();
  real all = 0;
  for (int at = thread_x() % 32; at < threads(); at += 32) all += of_thread[at];
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
