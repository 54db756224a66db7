// The order in which a training run sees its images.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/dataset.hpp"
#include "runtime/model.hpp"

namespace tessera::runtime {

/// The numbers 0 to count - 1 in an order that depends on (seed, epoch) alone, so that a run can go on from the middle
/// of an epoch. Source: Fisher and Yates, in Durstenfeld's form (1964).
std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// What one training step reads.
struct Batch {
  const float* images = nullptr;         ///< [size, channels, height, width], normalised
  const std::int32_t* labels = nullptr;  ///< [size]
  const float* targets = nullptr;        ///< [size, classes], probabilities, where the recipe softens labels
  std::int64_t size = 0;
};

/// Goes through a data set epoch by epoch in shuffled batches. The last batch of an epoch may be smaller. Threads share
/// out a batch's images; what comes of them is the same for any number of threads.
class Batches {
 public:
  /// `data` must outlive this. `classes` are the model's. What is read lies at addresses that `alignment` divides.
  Batches(const Dataset& data, const Recipe& recipe, std::int64_t classes, std::int64_t alignment);

  /// Shuffles for the epoch; `position` images of it count as seen already.
  void begin(std::int64_t epoch, std::int64_t position);
  /// Goes on with the image at `position` of the epoch.
  void skip_to(std::int64_t position);
  /// The next batch, valid until the next call; nullptr at the end of the epoch.
  const Batch* next();
  /// Prepares what next() will give, and gives it already, beside the present batch: while a GPU computes. Takes memory
  /// for a second batch; from then on all of them lie in these two. nullptr at the end of the epoch.
  const Batch* prepare();

  std::int64_t position() const { return position_; }  ///< images seen of this epoch, up to the last one that was given

 private:
  struct Room {
    Room(const Dataset& data, const Recipe& recipe, std::int64_t classes, std::int64_t alignment);
    Arena images, labels, targets;
    Batch batch;
  };

  void fill(Room& room) const;

  const Dataset& data_;
  Recipe recipe_;
  std::int64_t classes_, alignment_;
  std::vector<std::int32_t> order_;
  std::int64_t epoch_ = 0, position_ = 0;
  Room given_;
  std::optional<Room> ahead_;
  bool prepared_ = false;
};

}  // namespace tessera::runtime
