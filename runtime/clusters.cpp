#include "runtime/clusters.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/philox.hpp"

namespace tessera::runtime {
namespace {

constexpr int most_steps = 100;
constexpr std::uint32_t purpose = 0x6b6d;  // of the random numbers; no other draws of this seed are made

double squared_distance(std::span<const float> row, const double* centre) {
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double apart = static_cast<double>(row[i]) - centre[i];
    sum += apart * apart;
  }
  return sum;
}

}  // namespace

std::vector<std::int32_t> k_means(std::span<const float> rows, std::int64_t width, std::int64_t clusters) {
  const auto d = static_cast<std::size_t>(width), count = rows.size() / d;
  const auto row = [&](std::size_t i) { return rows.subspan(i * d, d); };
  std::vector<std::int32_t> cluster(count, 0);
  if (count == 0) return cluster;

  // The next centre is a row, drawn in proportion to its squared distance to the nearest centre so far.
  Random random(1, purpose, 0);
  std::vector<double> centres, nearest(count, std::numeric_limits<double>::infinity());
  const auto add = [&](std::size_t i) {
    centres.insert(centres.end(), row(i).begin(), row(i).end());
    for (std::size_t r = 0; r < count; ++r)
      nearest[r] = std::min(nearest[r], squared_distance(row(r), centres.data() + centres.size() - d));
  };
  add(static_cast<std::size_t>(random.uniform() * static_cast<double>(count)));
  for (std::int64_t c = 1; c < clusters; ++c) {
    double left = random.uniform() * std::accumulate(nearest.begin(), nearest.end(), 0.0);
    std::size_t drawn = count;
    for (std::size_t r = 0; r < count && left >= 0; ++r) {
      if (nearest[r] > 0) drawn = r;
      left -= nearest[r];
    }
    if (drawn == count) break;  // every row is a centre
    add(drawn);
  }
  const std::size_t found = centres.size() / d;

  std::vector<std::int64_t> sizes(found);
  for (int step = 0; step < most_steps; ++step) {
    bool changed = step == 0;
    for (std::size_t r = 0; r < count; ++r) {
      std::int32_t best = 0;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t c = 0; c < found; ++c)
        if (const double apart = squared_distance(row(r), centres.data() + c * d); apart < least)
          least = apart, best = static_cast<std::int32_t>(c);
      changed |= best != cluster[r];
      cluster[r] = best;
    }
    if (!changed) break;
    std::vector<double> sums(centres.size(), 0);
    std::ranges::fill(sizes, 0);
    for (std::size_t r = 0; r < count; ++r) {
      const auto c = static_cast<std::size_t>(cluster[r]);
      ++sizes[c];
      for (std::size_t i = 0; i < d; ++i) sums[c * d + i] += static_cast<double>(row(r)[i]);
    }
    for (std::size_t c = 0; c < found; ++c)
      for (std::size_t i = 0; sizes[c] > 0 && i < d; ++i)
        centres[c * d + i] = sums[c * d + i] / static_cast<double>(sizes[c]);
  }

  std::ranges::fill(sizes, 0);
  for (const std::int32_t c : cluster) ++sizes[static_cast<std::size_t>(c)];
  std::vector<std::size_t> order(found);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  std::vector<std::int32_t> number(found);
  for (std::size_t i = 0; i < found; ++i) number[order[i]] = static_cast<std::int32_t>(i);
  for (std::int32_t& c : cluster) c = number[static_cast<std::size_t>(c)];
  return cluster;
}

}  // namespace tessera::runtime
