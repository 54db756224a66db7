// The memory that models work in: aligned, and zero whatever lay there before.
#include "runtime/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace tessera::runtime {
namespace {

TEST(ArenaMemory, IsAlignedAndZeroAgainAfterItWasGivenBack) {
  constexpr std::int64_t huge = 1 << 21;
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{4096}, huge - 1, huge, huge + 1, 5 * huge + 3}) {
    for (int round = 0; round < 3; ++round) {
      const Arena arena(bytes, 64);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % (bytes < huge ? 64 : huge), 0u) << bytes;
      const std::span<std::byte> memory(static_cast<std::byte*>(arena.data()), static_cast<std::size_t>(bytes));
      EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == std::byte{}; })) << bytes;
      std::memset(memory.data(), 0xff, memory.size());
    }
  }
}

TEST(ArenaMemory, OfASizeThatIsNoneIsRefused) {
  EXPECT_THROW(Arena(-1, 64), std::bad_alloc);
  EXPECT_THROW(Arena::of_floats(std::int64_t{1} << 61, 64), std::bad_alloc);
}

}  // namespace
}  // namespace tessera::runtime
