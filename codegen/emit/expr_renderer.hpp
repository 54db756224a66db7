// A kernel's expressions as declarations of an emitted function, whatever the back end: each value gets a name once,
// and each tensor that is touched becomes a parameter. A back end says how a value is loaded, computed and named.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/emit/entry_writer.hpp"
#include "codegen/emit/tree.hpp"
#include "codegen/plan/kernel_view.hpp"

namespace tessera::codegen {

/// The name of a table's array in the file.
using TableName = std::function<std::string(TensorId tensor)>;

class ExprRenderer : public KernelView {
 public:
  /// The words in which back ends differ.
  struct Dialect {
    std::string value;                 ///< type of a value: "vec" or "real"
    std::string broadcast;             ///< makes a value of a number; "": a number is one
    std::string keep;                  ///< dropout's factors
    std::set<std::string> reserved{};  ///< names of the file that no variable can have
    TableName table{};                 ///< null: kernels are passed tables
  };

  /// The loop variable of an axis.
  std::string axis_name(int a) const;

  /// The value of an expression at the present place: a name or a number, declared in `b` unless it was before.
  tree::Expr evaluate(tree::Block& b, ExprId e);
  /// The parameter through which a tensor is reached.
  std::string argument(const Access& access, bool written);
  /// The parameters so far.
  std::vector<Argument> arguments;

 protected:
  ExprRenderer(const Plan& of, const Kernel& rendered, Dialect dialect)
      : KernelView(of, rendered), dialect_(std::move(dialect)) {}
  virtual ~ExprRenderer() = default;

  /// A reduced value.
  virtual tree::Expr local(int step) = 0;
  virtual tree::Expr load(const Access& access) = 0;
  virtual tree::Expr op(tree::Block& b, const Expression& x) = 0;
  /// A sum of multiples of axes' indices, as a real.
  virtual tree::Expr index(const Expression& x) = 0;
  /// 1 where an axis stands at the integer that `x` loads, else 0.
  virtual tree::Expr index_equals(const Expression& x) = 0;
  /// Which of dropout's factors it is, as arguments of the function that makes them.
  virtual std::vector<tree::Expr> element_of_dropout(const Expression& x) = 0;
  /// Equal keys mean one value.
  virtual std::vector<std::int64_t> key_of(ExprId e) = 0;
  /// `apart`: it is computed in another block than the one that reads it.
  virtual bool gets_name(ExprId e, const tree::Expr& value, bool apart) = 0;
  /// Where an expression that is needed in `b` is computed.
  virtual tree::Block& block_of(tree::Block& b, ExprId) { return b; }
  /// Gives a value its name there; the expression by which it is read.
  virtual tree::Expr declare(tree::Block& b, ExprId e, const std::string& name, tree::Expr value);

  tree::Expr broadcast(tree::Expr number) const;
  /// A name that no value has.
  std::string fresh(const char* prefix);

  std::map<ExprId, tree::Expr> given_;  ///< by expression: values that are known, and are not to be computed
  std::map<std::vector<std::int64_t>, tree::Expr> values_;

 private:
  tree::Expr make(tree::Block& b, ExprId e);

  const Dialect dialect_;
  int counter_ = 0;
};

}  // namespace tessera::codegen
