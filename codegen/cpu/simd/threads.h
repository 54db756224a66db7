// Threads take whole images. Where there are fewer images than threads, all threads go through every image together and
// share out the rows of each kernel in whole tiles; which of them computes a row does not change its bits.
static std::int64_t threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}
