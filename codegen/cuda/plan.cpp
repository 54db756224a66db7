#include "codegen/cuda/plan.hpp"

namespace tessera::codegen::cuda {

Plan plan_for_gpu(KernelProgram program) {
  Plan plan;
  plan.program = std::move(program);
  for (const Tensor& t : plan.program.tensors)
    plan.layouts.push_back(layout_of(t, static_cast<int>(t.shape.size()) - 1));
  plan.stages = make_stages(plan.program);
  place_buffers(plan);
  if (plan.program.name == "inspect") place_inspected(plan);
  verify(plan);
  // Buffers that do not meet in an image's arena do not meet when each is as long as the batch: offsets and sizes grow
  // alike.
  for (const Buffer& b : plan.buffers)
    if (b.per_image) {
      const Tensor& t = plan.program.tensors[static_cast<std::size_t>(b.tensor)];
      plan.layouts[static_cast<std::size_t>(b.tensor)] = layout_of(t, static_cast<int>(t.shape.size()) - 1);
    }
  return plan;
}

Extent where_of(const Plan& plan, const Buffer& buffer) {
  if (buffer.per_image) return {plan.scratch.fixed, buffer.offset - plan.scratch.fixed};
  return {buffer.offset, 0};
}

Extent slot_of(const Buffer& buffer) { return buffer.per_image ? Extent{0, buffer.slot} : Extent{buffer.slot, 0}; }

}  // namespace tessera::codegen::cuda
