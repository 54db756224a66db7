// Threads take whole images. Where there are fewer images than threads, all threads go through every image together and
// share out the rows of each kernel in whole tiles; which of them computes a row does not change its bits.
[[maybe_unused]] static std::int64_t threads() {
#if defined(_OPENMP)
  return omp_get_max_threads();
#else
  return 1;
#endif
}
/// Where a part begins, of `parts` about equal ones.
static std::int64_t share(std::int64_t rows, std::int64_t tile, std::int64_t part, std::int64_t parts) {
  return (rows + tile - 1) / tile * part / parts * tile;
}

/// A thread's images, and which part of their rows is its own.
struct Team {
  std::int64_t first, last, part, parts;

  std::int64_t begin(std::int64_t rows, std::int64_t tile) const { return share(rows, tile, part, parts); }
  std::int64_t end(std::int64_t rows, std::int64_t tile) const {
    return std::min(rows, share(rows, tile, part + 1, parts));
  }
  /// Until all of the team have come here: what they have written can be read.
  void wait() const {
#if defined(_OPENMP)
    if (parts > 1) {
#pragma omp barrier
    }
#endif
  }
};
[[maybe_unused]] static Team team_of(std::int64_t batch) {
#if defined(_OPENMP)
  const std::int64_t count = omp_get_num_threads(), mine = omp_get_thread_num();
  if (batch < count) return {0, batch, mine, count};
  return {batch * mine / count, batch * (mine + 1) / count, 0, 1};
#else
  return {0, batch, 0, 1};
#endif
}
