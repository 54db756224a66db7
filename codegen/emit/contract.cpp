#include "codegen/emit/contract.hpp"

#include "codegen/emit/entry.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/optimizer.hpp"

namespace tessera::codegen {

namespace {

Extent operator+(const Extent& a, const Extent& b) { return {a.fixed + b.fixed, a.per_batch + b.per_batch}; }

}  // namespace

Contract contract(const ModelFiles& m) {
  const graph::Recipe& recipe = m.forward.recipe;
  const std::int64_t real = m.real == "double" ? 8 : 4,
                     label = recipe.phase ? 0 : (compared_with(m.forward) == "labels" ? 4 : real) * m.target_reals(),
                     loss = real * (1 + static_cast<std::int64_t>(m.forward.losses.size())),
                     pixel = takes_tokens(m.forward) ? 4 : real;
  const Extent& scratch = m.plan(ProgramKind::forward).scratch;

  Contract c;
  for (const ArenaEntry& e : m.arena.entries) c.parameters += e.reals * e.count;
  c.parameter_bytes = real * m.arena.reals;
  const Extent images_and_outputs{0, pixel * m.image_reals() + real * m.output_reals()};
  const std::int64_t weights = c.parameter_bytes + real * m.packed.reals;
  c.forward_bytes = Extent{(takes_parameters(m.plan(ProgramKind::forward).program) ? c.parameter_bytes : 0) +
                               real * m.packed.forward_reals,
                           0} +
                    images_and_outputs + Extent{scratch.fixed * real, scratch.per_batch * real};
  c.forward_flops = m.forward_flops;
  if (!trains(m.plans)) return c;

  c.optimizer_bytes = static_cast<std::int64_t>(optimizer_state(recipe).size()) * c.parameter_bytes;
  const std::int64_t gradient_bytes = c.parameter_bytes;
  c.train_bytes = Extent{weights + gradient_bytes + c.optimizer_bytes + loss, label} + images_and_outputs;
  c.train_flops = m.gradient_flops + flops(m.plan(ProgramKind::update).program.graph);
  // The norm of the gradients is no graph's: a square and a sum for each number.
  if (recipe.clip_norm > 0) c.train_flops.fixed += 2 * m.arena.reals;
  return c;
}

}  // namespace tessera::codegen
