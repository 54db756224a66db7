#include "runtime/halves.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

bool same_parameters(const TrainingHalf& a, const TrainingHalf& b) {
  const auto same = [](const tessera_parameter& x, const tessera_parameter& y) {
    return std::string_view(x.name) == y.name && x.offset == y.offset && x.rank == y.rank &&
           std::equal(x.shape, x.shape + x.rank, y.shape);
  };
  return a.parameter_floats == b.parameter_floats && a.optimizer_floats == b.optimizer_floats &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(), same);
}

}  // namespace

AlternatingHalves::AlternatingHalves(const TrainingHalf& first, const TrainingHalf& second, std::int64_t batch)
    : halves_{first, second},
      batch_(batch),
      parameters_(Arena::of_floats(first.parameter_floats, first.alignment)),
      gradients_(Arena::of_floats(first.parameter_floats, first.alignment)),
      optimizer_(Arena::of_floats(first.optimizer_floats, first.alignment)),
      packed_{Arena::of_floats(first.packed_floats, first.alignment),
              Arena::of_floats(second.packed_floats, second.alignment)},
      scratch_(std::max(first.scratch_bytes(batch), second.scratch_bytes(batch)), first.alignment) {
  if (!same_parameters(first, second))
    fail("the halves ", first.name, " and ", second.name, " are not over the same parameters");
  for (int half : {0, 1}) {
    outputs_[half].resize(static_cast<std::size_t>(size_product({batch, halves_[half].output_floats})));
    losses_[half].resize(halves_[half].losses.size());
  }
}

void AlternatingHalves::check(int which, int code) const {
  if (code) fail("the ", halves_[which].name, ": ", halves_[which].error(code));
}

void AlternatingHalves::init(std::uint64_t seed) { check(0, halves_[0].init(parameters(), seed)); }

void AlternatingHalves::step(const float* images, std::int64_t batch, std::int64_t step, float factor,
                             const float (&learning_rate)[2]) {
  if (batch > batch_) fail("a batch of ", batch, " images, where there is room for ", batch_);
  for (int half : {0, 1}) run(half, images, batch, step, factor, learning_rate[half]);
}

void AlternatingHalves::run(int which, const float* images, std::int64_t batch, std::int64_t step, float factor,
                            float learning_rate) {
  const TrainingHalf& half = halves_[which];
  float* const packed = packed_[which].floats();
  check(which, half.pack(parameters(), packed));  // of what the other half has changed
  float loss = 0;
  check(which,
        half.loss_and_gradients(parameters(), packed, images, &factor, batch, batch, 0, step, outputs_[which].data(),
                                losses_[which].data(), &loss, gradients_.floats(), scratch_.data()));
  const auto diverged = [&](const auto&... what) {
    fail("training diverged in the ", half.name, "'s half of step ", step, ": ", what...);
  };
  for (std::size_t i = 0; i < half.losses.size(); ++i)
    if (!std::isfinite(losses_[which][i])) diverged(half.losses[i], " is not a number");
  if (!std::isfinite(loss)) diverged("its loss is not a number");
  for (const tessera_parameter& row : half.parameters)
    if (!finite(gradients_.floats() + row.offset, elements(Shape(row.shape, row.shape + row.rank))))
      diverged("the gradient of ", row.name, " is not a number");
  check(which, half.update(parameters(), packed, gradients_.floats(), optimizer(), step, learning_rate));
}

float AlternatingHalves::loss(std::string_view name) const {
  for (int half : {0, 1})
    for (std::size_t i = 0; i < losses_[half].size(); ++i)
      if (halves_[half].losses[i] == name) return losses_[half][i];
  fail("there is no loss called ", name);
}

}  // namespace tessera::runtime
