// Rows that are near each other, found without labels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera::runtime {

/// k-means of rows [n, width]: the cluster of each row, from 0, the largest first. Centres start as k-means++ draws
/// them (Arthur, Vassilvitskii 2007) from a fixed seed, then Lloyd's steps (1982) until no row changes its cluster, 100
/// at most: the same rows have the same clusters everywhere. There are fewer clusters where fewer rows differ.
/// scikit-learn equivalent: KMeans(n_clusters=clusters, n_init=1).fit_predict(rows)
std::vector<std::int32_t> k_means(std::span<const float> rows, std::int64_t width, std::int64_t clusters);

}  // namespace tessera::runtime
