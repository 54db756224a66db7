// Random numbers from a counter: the same numbers everywhere, and any of them without the ones before.
#pragma once

#include <array>
#include <cstdint>

namespace tessera::runtime {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Philox4x32-10: four random words from a counter and a key.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0], b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// One sequence of random numbers for each (seed, purpose, index). Only integer arithmetic and exact floating-point
/// operations: the standard library's distributions differ from library to library.
class Random {
 public:
  Random(std::uint64_t seed, std::uint32_t purpose, std::uint64_t index)
      : counter_{0, purpose, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
        key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {}

  std::uint32_t word() {
    if (used_ == block_.size()) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  /// In [0, 1).
  double uniform() { return word() * 0x1p-32; }
  /// In [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Bell-shaped with mean 0 and deviation 1, within +-3.5: the sum of four uniform numbers.
  double bell() {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += uniform();
    return sum * 1.7320508075688772;
  }
  /// In [0, bound), every value equally likely. Source: Lemire, "Fast random integer generation in an interval", 2019.
  std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{word()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t rest = (0 - bound) % bound;
      while (static_cast<std::uint32_t>(product) < rest) product = std::uint64_t{word()} * bound;
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  PhiloxBlock counter_;
  std::array<std::uint32_t, 2> key_;
  PhiloxBlock block_{};
  std::size_t used_ = 4;
};

/// What a sequence of random numbers is for: two purposes never share one.
enum Purpose : std::uint32_t {
  shuffling = 1,
  training_digits = 2,
  test_digits = 3,
  augmenting = 4,
  mixing = 5,
  sampling = 6,
  replacing = 7
};

}  // namespace tessera::runtime
