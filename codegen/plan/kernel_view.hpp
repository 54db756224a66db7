// A kernel as it lies in a plan: what whoever schedules or prints it asks.
#pragma once

#include <map>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

class KernelView {
 public:
  KernelView(const Plan& of, const Kernel& viewed) : plan(of), kernel(viewed) {}

  const Plan& plan;
  const Kernel& kernel;

  const Expression& expression(ExprId e) const { return kernel.expressions[e]; }
  const Step& step(std::size_t s) const { return kernel.steps[s]; }
  const Tensor& tensor(const Access& access) const { return plan.program.tensors[access.tensor]; }
  const Axis& axis(int a) const { return kernel.axes[a]; }
  /// Of an axis; -1: the batch.
  std::int64_t extent_of(int a) const { return axis(a).dim.known() ? axis(a).dim.value() : -1; }
  bool is_batch(int a) const { return !axis(a).dim.known(); }
  std::vector<int> outer_axes() const;
  /// The points of several axes together.
  Extent points(const std::vector<int>& axes) const;
  /// Strides of an access by axis. `constant`, unless null, gets what its offsets add.
  std::map<int, std::int64_t> strides_of(const Access& access, std::int64_t* constant = nullptr) const;
  /// Whether a tensor is stored as bf16: its elements are widened when they are read, and rounded when written.
  bool rounds(const Access& access) const { return tensor(access).element == DType::bf16; }
  /// All expressions below, and how often each is used.
  void reach(ExprId e, std::map<ExprId, int>& uses) const;
};

}  // namespace tessera::codegen
