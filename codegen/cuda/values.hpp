// Expression trees as statements of a kernel: what one thread computes at the place where it stands.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/expr_renderer.hpp"

namespace tessera::codegen::cuda {

/// Axes that one variable runs over, the last one fastest.
struct FlatIndex {
  std::vector<int> axes;
  std::string variable;
};

class Values : public ExprRenderer {
 public:
  /// `pairs`: every value is one of two neighbours along that axis, where that is one.
  Values(const Plan& of, const Kernel& rendered, TableName table, int pairs = -1);

 protected:
  /// Gives one variable to several axes (axes of one point need none). Named after the axis when it is only one.
  FlatIndex fuse(std::vector<int> axes, const std::string& variable) const;
  /// From here on these axes stand at that variable.
  void stand(const FlatIndex& fused) { fused_.push_back(fused); }
  void leave() { fused_.pop_back(); }

  /// stride * axis, summed, in the variables in use; an axis' own variable is noted as needed when its group's does not
  /// do.
  tree::Expr linear(const std::map<int, std::int64_t>& strides, std::int64_t constant);
  tree::Expr element(const Access& access, bool written);
  /// Where an element lies.
  tree::Expr address(const Access& access, bool written = false);
  /// The declarations of the axes of a group that were needed since the last call.
  tree::Block declare_needed(const FlatIndex& fused);

  /// Opens a scope of values: those that `roots` name more than once will be variables.
  void begin(const std::vector<ExprId>& roots);
  /// From here on, until a vector of 0: of so many neighbours along an axis, at the first of which its variable stands,
  /// `lane` is at hand; what lies in vectors is loaded before, and stored behind.
  void stand_in_vector(int axis, int count);
  tree::Block vector_loads, vector_stores;
  /// In this scope, the expression has that value.
  void take(ExprId e, tree::Expr value) { given_[e] = std::move(value); }
  void put(tree::Block& b, const Step::Store& store);
  /// The same with the store in another block, which may be a branch: what is loaded for it is loaded before.
  void put(tree::Block& values, tree::Block& stores, const Step::Store& store);

  /// Whether the values below these can all be computed for two neighbours at a time.
  bool has_pairs(const std::vector<ExprId>& roots) const;

  std::map<int, tree::Expr> locals_;  ///< reduced values, by step

 private:
  tree::Expr local(int step) override { return locals_.at(step); }
  tree::Expr load(const Access& access) override;
  tree::Expr op(tree::Block& b, const Expression& x) override;
  /// A sum of multiples of axes, each as `at` writes it.
  tree::Expr sum_of(const Affine& index, const std::function<tree::Expr(int axis)>& at) const;
  tree::Expr index(const Expression& x) override;
  tree::Expr index_equals(const Expression& x) override;
  std::vector<tree::Expr> element_of_dropout(const Expression& x) override;
  std::vector<std::int64_t> key_of(ExprId e) override { return {e.number()}; }
  bool gets_name(ExprId e, const tree::Expr& value, bool apart) override;
  tree::Expr position(int a) { return linear({{a, 1}}, 0); }
  /// How far apart two neighbours' elements are, and whether one instruction reaches both: of scratch memory, which
  /// begins on a multiple of 16 bytes.
  std::int64_t apart(const Access& access) const;
  bool reached_at_once(const Access& access) const;
  tree::Statement stored(const Access& to, tree::Expr value);
  /// Where the vector begins that an element is of.
  tree::Expr vector_address(const Access& access, bool written);

  const int pairs_;
  std::vector<FlatIndex> fused_;
  std::set<int> needed_;
  int vector_axis_ = -1, vector_ = 1;
  bool at_first_ = false;                                              ///< of a vector's lanes
  std::map<std::pair<std::string, std::string>, std::string> loaded_;  ///< vectors, by tensor and place
  std::map<ExprId, int> uses_;
};

}  // namespace tessera::codegen::cuda
