#include "runtime/batches.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/philox.hpp"

namespace tessera::runtime {

std::vector<std::int32_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, shuffling, static_cast<std::uint64_t>(epoch));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<std::uint32_t>(left))]);
  return order;
}

Batches::Batches(const Dataset& data, std::int64_t batch_size, std::uint64_t seed, double mean, double deviation,
                 std::int64_t alignment)
    : data_(data),
      batch_size_(batch_size),
      seed_(seed),
      mean_(mean),
      deviation_(deviation),
      images_(Arena::of_floats(batch_size * data.image_size(), alignment)),
      labels_(static_cast<std::int64_t>(sizeof(std::int32_t)) * batch_size, alignment) {}

void Batches::begin(std::int64_t epoch, std::int64_t position) {
  order_ = shuffled(data_.size(), seed_, epoch);
  position_ = position;
}

const Batch* Batches::next() {
  const std::int64_t size = std::min(batch_size_, data_.size() - position_);
  if (size <= 0) return nullptr;
  auto* const labels = static_cast<std::int32_t*>(labels_.data());
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t index = order_[static_cast<std::size_t>(position_ + i)];
    normalize(data_.image(index), mean_, deviation_, images_.floats() + i * data_.image_size());
    labels[i] = data_.labels[static_cast<std::size_t>(index)];
  }
  position_ += size;
  batch_ = {images_.floats(), labels, size};
  return &batch_;
}

}  // namespace tessera::runtime
