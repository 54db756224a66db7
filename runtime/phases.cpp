#include "runtime/phases.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/divergence.hpp"
#include "runtime/error.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

bool same_parameters(const TrainingPhase& a, const TrainingPhase& b) {
  const auto same = [](const tessera_parameter& x, const tessera_parameter& y) {
    return std::string_view(x.name) == y.name && x.offset == y.offset && x.rank == y.rank &&
           std::equal(x.shape, x.shape + x.rank, y.shape);
  };
  return a.parameter_floats == b.parameter_floats && a.optimizer_floats == b.optimizer_floats &&
         std::equal(a.parameters.begin(), a.parameters.end(), b.parameters.begin(), b.parameters.end(), same);
}

}  // namespace

AlternatingPhases::AlternatingPhases(const TrainingPhase& first, const TrainingPhase& second, std::int64_t batch)
    : phases_{first, second},
      batch_(batch),
      parameters_(Arena::of_floats(first.parameter_floats, first.alignment)),
      gradients_(Arena::of_floats(first.parameter_floats, first.alignment)),
      optimizer_(Arena::of_floats(first.optimizer_floats, first.alignment)),
      packed_{Arena::of_floats(first.packed_floats, first.alignment),
              Arena::of_floats(second.packed_floats, second.alignment)},
      scratch_(std::max(first.scratch_bytes(batch), second.scratch_bytes(batch)), first.alignment) {
  if (!same_parameters(first, second))
    fail("the phases ", first.name, " and ", second.name, " are not over the same parameters");
  for (int phase : {0, 1}) {
    outputs_[phase].resize(static_cast<std::size_t>(size_product({batch, phases_[phase].output_floats})));
    losses_[phase].resize(phases_[phase].losses.size());
  }
}

void AlternatingPhases::check(int which, int code) const {
  if (code) fail("the ", phases_[which].name, ": ", phases_[which].error(code));
}

void AlternatingPhases::init(std::uint64_t seed) { check(0, phases_[0].init(parameters(), seed)); }

void AlternatingPhases::step(const float* images, std::int64_t batch, std::int64_t step, float factor,
                             const float (&learning_rate)[2]) {
  if (batch > batch_) fail("a batch of ", batch, " images, where there is room for ", batch_);
  for (int phase : {0, 1}) run(phase, images, batch, step, factor, learning_rate[phase]);
}

void AlternatingPhases::run(int which, const float* images, std::int64_t batch, std::int64_t step, float factor,
                            float learning_rate) {
  const TrainingPhase& phase = phases_[which];
  float* const packed = packed_[which].floats();
  check(which, phase.pack(parameters(), packed));  // of what the other phase has changed
  float loss = 0;
  check(which,
        phase.loss_and_gradients(parameters(), packed, images, &factor, batch, batch, 0, step, outputs_[which].data(),
                                 losses_[which].data(), &loss, gradients_.floats(), scratch_.data()));
  const auto diverged = [&](const auto&... what) {
    fail("training diverged in the ", phase.name, "'s phase of step ", step, ": ", what...);
  };
  for (std::size_t i = 0; i < phase.losses.size(); ++i)
    if (!std::isfinite(losses_[which][i])) diverged(phase.losses[i], " is not a number");
  if (!std::isfinite(loss)) diverged("its loss is not a number");
  for (const tessera_parameter& row : phase.parameters)
    if (!finite(gradients_.floats() + row.offset, elements(Shape(row.shape, row.shape + row.rank))))
      diverged("the gradient of ", row.name, " is not a number");
  check(which, phase.update(parameters(), packed, gradients_.floats(), optimizer(), step, learning_rate));
}

float AlternatingPhases::loss(std::string_view name) const {
  for (int phase : {0, 1})
    for (std::size_t i = 0; i < losses_[phase].size(); ++i)
      if (phases_[phase].losses[i] == name) return losses_[phase][i];
  fail("there is no loss called ", name);
}

}  // namespace tessera::runtime
