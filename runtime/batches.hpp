// The order in which a training run sees its images.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/dataset.hpp"

namespace tessera::runtime {

/// The numbers 0 to count - 1 in an order that depends on (seed, epoch) alone, so that a run can go on from the middle
/// of an epoch. Source: Fisher and Yates, in Durstenfeld's form (1964).
std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// What one training step reads.
struct Batch {
  const float* images = nullptr;         ///< [size, channels, height, width], normalised
  const std::int32_t* labels = nullptr;  ///< [size]
  std::int64_t size = 0;
};

/// Goes through a data set epoch by epoch in shuffled batches. The last batch of an epoch may be smaller.
class Batches {
 public:
  /// `data` must outlive this. Images and labels lie at addresses that `alignment` divides.
  Batches(const Dataset& data, std::int64_t batch_size, std::uint64_t seed, double mean, double deviation,
          std::int64_t alignment);

  /// Shuffles for the epoch; `position` images of it count as seen already.
  void begin(std::int64_t epoch, std::int64_t position);
  /// The next batch, valid until the next call; nullptr at the end of the epoch.
  const Batch* next();

  std::int64_t position() const { return position_; }  ///< images seen of this epoch

 private:
  const Dataset& data_;
  std::int64_t batch_size_;
  std::uint64_t seed_;
  double mean_, deviation_;
  std::vector<std::int32_t> order_;
  std::int64_t position_ = 0;
  Arena images_, labels_;
  Batch batch_;
};

}  // namespace tessera::runtime
