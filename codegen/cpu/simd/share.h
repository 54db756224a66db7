// The rows of a weight's gradient are shared out among the threads in whole tiles; which thread sums up a row does not
// change its bits.
static std::int64_t threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}
/// Where the part begins, of `parts` about equal ones; `tile` divides `rows`.
static std::int64_t share(std::int64_t rows, std::int64_t tile, std::int64_t part, std::int64_t parts) {
  return rows / tile * part / parts * tile;
}
