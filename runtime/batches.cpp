#include "runtime/batches.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/augment.hpp"
#include "runtime/mixing.hpp"
#include "runtime/philox.hpp"
#include "runtime/preprocess.hpp"

namespace tessera::runtime {

std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, shuffling, static_cast<std::uint64_t>(epoch));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  return order;
}

Batches::Room::Room(const Dataset& data, const Recipe& recipe, std::int64_t classes, std::int64_t alignment)
    : images(Arena::of_floats(size_product({recipe.batch, data.image_size()}), alignment)),
      labels(size_product({sizeof(std::int32_t), recipe.batch}), alignment),
      targets(Arena::of_floats(recipe.softens() ? size_product({recipe.batch, classes}) : 0, alignment)) {}

Batches::Batches(const Dataset& data, const Recipe& recipe, std::int64_t classes, std::int64_t alignment)
    : data_(data),
      recipe_(recipe),
      classes_(classes),
      alignment_(alignment),
      given_(data, recipe, classes, alignment) {}

void Batches::begin(std::int64_t epoch, std::int64_t position) {
  order_ = shuffled(data_.size(), recipe_.seed, epoch);
  epoch_ = epoch;
  position_ = position;
  prepared_ = false;
}

void Batches::skip_to(std::int64_t position) {
  if (position != position_) prepared_ = false;
  position_ = position;
}

const Batch* Batches::next() {
  if (position_ >= data_.size()) return nullptr;
  if (std::exchange(prepared_, false))
    std::swap(given_, *ahead_);
  else
    fill(given_);
  position_ += given_.batch.size;
  return &given_.batch;
}

const Batch* Batches::prepare() {
  if (position_ >= data_.size()) return nullptr;
  if (!ahead_) ahead_.emplace(data_, recipe_, classes_, alignment_);
  if (!std::exchange(prepared_, true)) fill(*ahead_);
  return &ahead_->batch;
}

void Batches::fill(Room& room) const {
  const std::int64_t size = std::min(recipe_.batch, data_.size() - position_);
  // What chance decides depends on the epoch and the place in it alone, so that a resumed run draws the same.
  const auto place = [&](std::int64_t position) {
    return static_cast<std::uint64_t>(epoch_) << 32 | static_cast<std::uint64_t>(position);
  };
  auto* const labels = static_cast<std::int32_t*>(room.labels.data());
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t index = order_[static_cast<std::size_t>(position_ + i)];
    float* const to = room.images.floats() + i * data_.image_size();
    if (recipe_.augment.any()) {
      Random random(recipe_.seed, augmenting, place(position_ + i));
      const Bytes image =
          augmented(data_.image(index), data_.channels, data_.height, data_.width, recipe_.augment, random);
      normalize(image, data_.channels, recipe_.input, to);
    } else {
      normalize(data_.image(index), data_.channels, recipe_.input, to);
    }
    labels[i] = data_.labels[static_cast<std::size_t>(index)];
  }
  if (recipe_.softens()) {
    Random random(recipe_.seed, mixing, place(position_));
    mix(recipe_, size, data_.channels, data_.height, data_.width, classes_, labels, room.images.floats(),
        room.targets.floats(), random);
  }
  room.batch = {room.images.floats(), labels, recipe_.softens() ? room.targets.floats() : nullptr, size};
}

}  // namespace tessera::runtime
