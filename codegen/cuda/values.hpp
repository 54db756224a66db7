// Expression trees as statements of a kernel: what one thread computes at the place where it stands.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cuda {

/// What a kernel is passed for a tensor: itself, or the layer `shift` further on.
struct Argument {
  TensorId tensor;  ///< none: the partial sums
  int shift = 0;
  bool written = false;
  std::string name;
};

/// Axes that one variable runs over, the last one fastest.
struct FlatIndex {
  std::vector<int> axes;
  std::string variable;
};

/// The name of a table's array in the file.
using TableName = std::function<std::string(TensorId tensor)>;

class Values {
 public:
  Values(const Plan& plan, const Kernel& kernel, TableName table);

 protected:
  const Expression& expression(int i) const { return kernel_.expressions[i]; }
  const Axis& axis(int a) const { return kernel_.axes[a]; }
  /// Of an axis; -1: the batch.
  std::int64_t extent_of(int a) const { return axis(a).dim.known() ? axis(a).dim.value() : -1; }
  bool is_batch(int a) const { return !axis(a).dim.known(); }
  std::string axis_name(int a) const;
  /// The points of several axes together.
  Extent points(const std::vector<int>& axes) const;

  /// Gives one variable to several axes (axes of one point need none). Named after the axis when it is only one.
  FlatIndex fuse(std::vector<int> axes, const std::string& variable) const;
  /// From here on these axes stand at that variable.
  void stand(const FlatIndex& fused) { fused_.push_back(fused); }
  void leave() { fused_.pop_back(); }

  /// stride * axis, summed, in the variables in use; an axis' own variable is noted as needed when its group's does not
  /// do.
  tree::Expr linear(const std::map<int, std::int64_t>& strides, std::int64_t constant);
  tree::Expr element(const Access& access, bool written);
  /// Where an element that is read lies.
  tree::Expr address(const Access& access);
  /// Whether a tensor is stored as bf16: its elements are widened when they are read, and rounded when written.
  bool rounds(const Access& access) const;
  /// The declarations of the axes of a group that were needed since the last call.
  tree::Block declare_needed(const FlatIndex& fused);

  /// Opens a scope of values: those that `roots` name more than once will be variables.
  void begin(const std::vector<int>& roots);
  tree::Expr evaluate(tree::Block& b, int e);
  /// In this scope, the expression has that value.
  void take(int e, tree::Expr value) { values_[e] = std::move(value); }
  void put(tree::Block& b, const Step::Store& store);
  /// Strides of an access by axis.
  std::map<int, std::int64_t> strides_of(const Access& access, std::int64_t* constant = nullptr) const;
  std::string argument(const Access& access, bool written);
  /// All expressions below.
  void reach(int e, std::map<int, int>& uses) const;

  const Plan& plan_;
  const Kernel& kernel_;
  TableName table_;
  std::vector<Argument> arguments_;
  std::map<int, tree::Expr> locals_;  ///< reduced values, by step

 private:
  tree::Expr make(tree::Block& b, int e);
  tree::Expr position(int a) { return linear({{a, 1}}, 0); }

  std::vector<FlatIndex> fused_;
  std::set<int> needed_;
  std::map<int, int> uses_;
  std::map<int, tree::Expr> values_;
  int counter_ = 0;
};

}  // namespace tessera::codegen::cuda
