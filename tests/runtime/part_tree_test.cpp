// Sums of the parts of a step: the same tree whoever has which parts.
#include "runtime/part_tree.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "runtime/philox.hpp"

namespace tessera::runtime {
namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  Random random(seed, 3000, 0);
  std::vector<float> parts(static_cast<std::size_t>(count));
  for (float& part : parts) part = static_cast<float>(random.uniform(-1, 1));
  return parts;
}

/// The tree by its definition: the left half is the largest power of two that leaves something for the right.
float by_definition(const std::vector<float>& parts, std::size_t first, std::size_t last) {
  const std::size_t count = last - first;
  if (count == 1) return parts[first];
  const std::size_t left = std::bit_ceil(count) / 2;
  return by_definition(parts, first, first + left) + by_definition(parts, first + left, last);
}

/// What a holder of the parts from `first` to `last` has summed: the nodes, and the numbers in their buffers.
std::vector<Subtree> summed(const std::vector<float>& parts, std::int64_t first, std::int64_t last,
                            std::vector<float>& sums) {
  const auto count = static_cast<std::int64_t>(parts.size());
  std::vector<float> buffers(static_cast<std::size_t>(PartTree::buffers(first, last, count)), 1e9f);
  PartTree tree;
  for (std::int64_t part = first; part < last; ++part)
    tree.add(part, count, [&](int into, int from, bool kept) {
      float& sum = buffers.at(static_cast<std::size_t>(into));
      const float& source =
          from == PartTree::fresh ? parts[static_cast<std::size_t>(part)] : buffers.at(static_cast<std::size_t>(from));
      sum = kept ? sum + source : source;
    });
  std::vector<Subtree> nodes = tree.nodes();
  for (Subtree& node : nodes) {
    sums.push_back(buffers[static_cast<std::size_t>(node.buffer)]);
    node.buffer = static_cast<int>(sums.size()) - 1;
  }
  return nodes;
}

TEST(PartTree, OneHolderSumsAlongTheTree) {
  for (std::int64_t count = 1; count <= 70; ++count) {
    const std::vector<float> parts = numbers(count, 1);
    std::vector<float> sums;
    const std::vector<Subtree> nodes = summed(parts, 0, count, sums);
    ASSERT_EQ(nodes.size(), 1u) << count;
    EXPECT_EQ(sums[0], by_definition(parts, 0, parts.size())) << count;
  }
}

TEST(PartTree, AnyHoldersGiveTheSameBits) {
  Random random(1, 3001, 0);
  for (const std::int64_t count : {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 33, 48}) {
    const std::vector<float> parts = numbers(count, 2);
    for (std::int64_t holders = 1; holders <= count; ++holders) {
      std::vector<Subtree> nodes;
      std::vector<float> sums;
      for (std::int64_t holder = 0; holder < holders; ++holder) {
        const std::vector<Subtree> own = summed(parts, holder * count / holders, (holder + 1) * count / holders, sums);
        nodes.insert(nodes.end(), own.begin(), own.end());
      }
      add_siblings(nodes, count, [&](int into, int from) {
        sums[static_cast<std::size_t>(into)] += sums[static_cast<std::size_t>(from)];
      });
      ASSERT_EQ(nodes.size(), 1u);
      EXPECT_EQ(sums[static_cast<std::size_t>(nodes[0].buffer)], by_definition(parts, 0, parts.size()))
          << count << " parts, " << holders << " holders";
    }
  }
}

TEST(PartTree, UpToThreePartsAreSummedAsOneAfterTheOtherAndMoreAreNot) {
  for (std::int64_t count = 1; count <= 20; ++count) {
    int different = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const std::vector<float> parts = numbers(count, seed);
      different += by_definition(parts, 0, parts.size()) != std::accumulate(parts.begin(), parts.end(), 0.0f);
    }
    EXPECT_EQ(different > 0, count > 3) << count;
  }
}

TEST(PartTree, TakesABufferForEachBinaryDigit) {
  for (const auto& [count, buffers] : {std::pair{1, 1}, {2, 1}, {3, 2}, {4, 2}, {7, 3}, {8, 3}, {16, 4}, {1024, 10}})
    EXPECT_EQ(PartTree::buffers(0, count, count), buffers) << count;
}

}  // namespace
}  // namespace tessera::runtime
