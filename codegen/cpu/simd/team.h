// Threads take whole images. Where there are fewer images than threads, all threads go through every image together and
// partition the rows of each kernel, of products with weights columns too, in whole tiles; which of them computes a
// tile does not change its bits.
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

/// Rows and columns of a product that are a thread's own.
struct Tiles {
  std::int64_t begin, end, left, right;
};

/// A thread's images, and which part of their rows is its own.
struct Team {
  std::int64_t first, last, part, parts;

  std::int64_t begin(std::int64_t rows, std::int64_t tile) const { return share(rows, tile, part, parts); }
  std::int64_t end(std::int64_t rows, std::int64_t tile) const {
    return std::min(rows, share(rows, tile, part + 1, parts));
  }
  /// Partitions tiles of `high` rows and `wide` columns so that the largest share is as small as can be. Among such
  /// ways the one with the fewest columns for a thread where weights are `far`, more than its L1 holds; else
  /// with the fewest rows, which other threads have made.
  Tiles tiles(std::int64_t rows, std::int64_t high, std::int64_t columns, std::int64_t wide, bool far) const {
    const auto largest = [](std::int64_t points, std::int64_t tile, std::int64_t among) {
      return ((points + tile - 1) / tile + among - 1) / among;
    };
    std::int64_t across = 1, most = 0;
    for (std::int64_t a = 1; a <= parts; ++a) {
      if (parts % a) continue;
      const std::int64_t all = largest(rows, high, parts / a) * largest(columns, wide, a);
      if (a > 1 && (far ? all > most : all >= most)) continue;
      across = a;
      most = all;
    }
    const std::int64_t down = parts / across, i = part / across, j = part % across;
    return {share(rows, high, i, down), std::min(rows, share(rows, high, i + 1, down)), share(columns, wide, j, across),
            std::min(columns, share(columns, wide, j + 1, across))};
  }
  /// Calls f on one thread, for which the others wait.
  template <class F>
  void alone(const F& f) const {
    if (part == 0) f();
    wait();
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
/// First (0) of whole images, then (1) of those that are left over.
[[maybe_unused]] static Team team_of(std::int64_t batch, std::int64_t rest) {
#if defined(_OPENMP)
  const std::int64_t count = omp_get_num_threads(), mine = omp_get_thread_num();
#else
  const std::int64_t count = 1, mine = 0;
#endif
  const std::int64_t each = batch / count;
  if (rest) return {each * count, batch, mine, count};
  return {each * mine, each * (mine + 1), 0, 1};
}
/// Calls f for every image, on the threads of its team.
template <class F>
[[maybe_unused]] static void each_image(std::int64_t batch, const F& f) {
#if defined(_OPENMP)
#pragma omp parallel
#endif
  for (std::int64_t rest = 0; rest < 2; ++rest) {
    const Team team = team_of(batch, rest);
    for (std::int64_t image = team.first; image < team.last; ++image) f(team, image);
  }
}
