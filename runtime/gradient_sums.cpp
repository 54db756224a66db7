#include "runtime/gradient_sums.hpp"

#include <cstddef>

namespace tessera::runtime {

GradientSums::GradientSums(const Model& model, const Communicator& ranks, int buffers)
    : floats_(model.parameter_floats) {
  for (int i = 0; i < buffers; ++i) buffers_.push_back(Arena::of_floats(floats_, model.alignment));
  if (!ranks.alone()) reduce_.emplace(ranks, floats_, model.alignment);
}

/// Looks up what the part adds to which sum.
void GradientSums::begin(const PartGradients& added, std::int64_t parts) {
  part_ = added;
  of_part_.clear();
  tree_.add(added.part, parts, [&](int into, int from, bool kept) { of_part_.push_back({into, from, kept}); });
}

void GradientSums::add_range(std::int64_t from, std::int64_t to) {
  for (const Sum& each : of_part_) {
    const bool fresh = each.from == PartTree::fresh;
    float* const sum = buffers_[static_cast<std::size_t>(each.into)].floats();
    const float* const more = fresh ? part_.floats : buffers_[static_cast<std::size_t>(each.from)].floats();
    const float weight = fresh ? part_.weight : 1;
    for (std::int64_t i = from; i < to; ++i) sum[i] = (each.kept ? sum[i] : 0) + weight * more[i];
  }
}

void GradientSums::add(const PartGradients& added, std::int64_t parts) {
  if (by_range_) return;
  begin(added, parts);
  add_range(0, floats_);
}

void GradientSums::begin_ranges(const std::optional<PartGradients>& last, std::int64_t parts) {
  by_range_ = true;
  of_part_.clear();
  if (last) begin(*last, parts);  // else others' sums are received all the same
  reduce_->begin(tree_.nodes(), buffers_, parts);
}

void GradientSums::range_ready(std::int64_t from, std::int64_t to) noexcept {
  if (broken_) return;
  try {
    add_range(from, to);
    reduce_->ready(from, to);
  } catch (...) {
    broken_ = std::current_exception();
  }
}

void GradientSums::exchange(std::int64_t parts) {
  if (broken_) std::rethrow_exception(broken_);
  if (reduce_) {
    if (!by_range_) {
      reduce_->begin(tree_.nodes(), buffers_, parts);
      reduce_->ready(0, floats_);
    }
    reduce_->end_ranges();  // before other messages: each rank has them in the same order
  }
  by_range_ = false;
}

float* GradientSums::mean(float share, float* to) {
  float* sum = to;
  if (reduce_) {
    reduce_->finish(share, to);
  } else {
    sum = buffers_[static_cast<std::size_t>(tree_.nodes().front().buffer)].floats();
    for (std::int64_t i = 0; i < floats_; ++i) sum[i] *= share;
  }
  tree_.clear();
  return sum;
}

}  // namespace tessera::runtime
