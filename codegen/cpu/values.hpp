// Expression trees as statements: what a kernel computes at the place where its loops stand.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cpu/kernel.hpp"
#include "codegen/emit/expr_renderer.hpp"
#include "codegen/plan/attention.hpp"

namespace tessera::codegen::cpu {

/// Where the emitted code stands along each axis: a loop variable (or none) and a constant.
struct Place {
  tree::Expr variable;  ///< null: none
  std::int64_t offset = 0;
  tree::Expr within{};  ///< place in a register tile, by the variable of an unrolled loop; null: none
};

/// A run of points along one axis that one piece of code handles: how many, and how many lanes the last vector has.
struct Piece {
  std::int64_t points = 0;  ///< tile points (vectors along the vector axis)
  int tail = 0;             ///< lanes of the last vector; 0: all
  std::string parameter{};  ///< of a lambda over the sizes of a tile, which stands for `points`; "": none

  bool one() const { return points == 1 && parameter.empty(); }
  tree::Expr count() const { return parameter.empty() ? tree::integer(points) : tree::name(parameter); }
};
/// A register tile, the points whose sums are accumulators of one piece of code: a piece of each tiled axis.
using Tile = std::vector<std::pair<int, Piece>>;

/// Turns expressions into declarations of vectors, each once for each place, and collects the tensors that they touch.
/// Every part is handed it: loops (loop_nest.hpp) move the place and say how many lanes are in use.
class Values : public ExprRenderer {
 public:
  /// `part`: of those that run within the kernel; -1: the kernel itself.
  Values(const Plan& of, int number, const Target& on, int part = -1);

  bool inner(int a) const { return kernel.axes[a].inner; }

  void set(int axis, tree::Expr variable, std::int64_t offset = 0) { place[axis] = {std::move(variable), offset}; }
  /// stride * the index along an axis.
  tree::Expr along(int axis, std::int64_t stride) const;
  /// The constants of the place along the outer axes: which point of a tile it is.
  std::vector<std::int64_t> offsets_of_outer() const;

  struct TileLoop {
    int axis = -1;
    Piece piece;
    const char* variable = "";
  };
  /// A tile's loops: its pieces of several points.
  std::vector<TileLoop> loops_of(const Tile& tile) const;
  /// Unrolled loops over a register tile around what `inside` makes, with the place set to their variables. Of what it
  /// evaluates, that which one of them does not change is computed once for all its turns.
  void unrolled(tree::Block& b, const Tile& tile, const std::function<void(tree::Block&)>& inside);
  /// A loop along all of the vector axis, tail included, whose vectors reduce into `ways` interleaved accumulators in
  /// turns (simd/along_row.h). What an inner axis, which is the innermost one, does not change is computed before it.
  /// `end`: of whole turns, or of the axis, where the loop ends; null: with the axis.
  void along_row(tree::Block& b, int ways, const tree::Expr& end,
                 const std::function<void(tree::Block&, const tree::Expr& way)>& inside);

  /// Begins another function of the kernel, whose lanes run along another axis.
  void restart(int along_lanes);
  /// Values that are known from here on, by expression.
  void know(std::map<ExprId, tree::Expr> values) { given_ = std::move(values); }
  /// Forgets the names given so far: a scope ends.
  void reset() { values_.clear(); }

  /// An element, or a vector of them.
  tree::Expr load(const Access& access) override;
  /// A vector at consecutive addresses, of as many lanes as are in use.
  tree::Expr dense_load(tree::Expr at) const;
  /// `uniform`: all lanes hold the one number that is stored. `of`: "_bf16" where it is stored as that.
  void dense_store(tree::Block& b, tree::Expr at, tree::Expr value, bool uniform, const std::string& of = "") const;
  void put(tree::Block& b, const Step::Store& store);
  /// Adds to what is stored there.
  void add(tree::Block& b, const Step::Store& store, tree::Expr value);
  /// The address that an access means at the present place.
  tree::Expr address(const Access& access, bool written) {
    return tree::name(argument(access, written)) + offset_of(access);
  }

  tree::Expr offset_of(const Access& access) const;
  bool in_panels(const Access& access) const;
  bool on_stack(const Access& access) const { return tensor(access).storage == Storage::registers; }
  /// Where a block of attention's queries or keys begins, if that is what is summed over, so that its sums go on from
  /// those of earlier ones; null: it is not.
  const char* accumulates_from() const {
    if (kernel.anchor != Anchor::contraction) return nullptr;
    if (block.queries >= 0 && inner(block.queries)) return "begin";
    return block.keys >= 0 && inner(block.keys) ? "key_begin" : nullptr;
  }
  /// Columns of a GEMM's tile, and of a panel, in values.
  std::int64_t columns_of_tile() const { return schedule.tile[kernel.gemm.columns] * target.lanes; }
  /// How far apart two lanes lie.
  std::int64_t lane_step(const Access& access) const;
  /// How far apart neighbours along an axis lie.
  std::int64_t step_of(const Access& access, int axis) const;
  /// Whether an expression is one number for all lanes: a row statistic, or made of them.
  bool uniform(ExprId e);
  /// Whether an expression is a multiplication that one operation alone reads: with an addition it is a fused one.
  bool is_multiplication(ExprId e) const;

  const Target& target;
  const Schedule& schedule;
  int vector;                        ///< axis across lanes; -1: none
  std::vector<std::int64_t> extent;  ///< by axis; -1: the batch
  std::vector<Place> place;
  tree::Expr tail;    ///< lanes in use; null: all
  bool some = false;  ///< whether a tail may be all lanes nevertheless
  /// The axes of one block of attention: heads whose number is a parameter, the queries from `begin` on and, unless all
  /// of them are in each block, the keys from `key_begin` on. Scores lie on the stack, a block of them.
  AttentionAxes block;
  std::map<int, std::int64_t> most_of_block;  ///< by axis of which it has a part that is known when the program runs
  std::map<std::pair<int, std::vector<std::int64_t>>, tree::Expr> locals;  ///< reduced values, by step and tile point

 private:
  /// An index as a vector of reals.
  tree::Expr number(const Affine& index) const;
  const std::set<int>& axes_of(ExprId e);
  bool varies_along_row(ExprId e);
  bool divides_by_row_statistic(const Expression& x);
  tree::Expr local(int step) override { return locals.at({step, offsets_of_outer()}); }
  tree::Expr op(tree::Block& b, const Expression& x) override;
  tree::Expr index(const Expression& x) override;
  tree::Expr index_equals(const Expression& x) override;
  std::vector<tree::Expr> element_of_dropout(const Expression& x) override;
  std::vector<std::int64_t> key_of(ExprId e) override;
  bool gets_name(ExprId e, const tree::Expr& value, bool apart) override;
  /// Unrolled loops, and what of their bodies is made before them.
  struct Unrolled {
    std::vector<TileLoop> loops;             ///< the innermost last
    tree::Block before, outer, inner_alone;  ///< of no loop, of the outer one, of the inner one of two
    tree::Block arrays;                      ///< values of the inner one of two
  };
  /// A load of as many lanes as are in use, by the functions of that name; how many these are.
  tree::Expr of_lanes(const std::string& load, const std::string& of, tree::Expr at) const;
  tree::Expr lanes_in_use() const;
  tree::Block& block_of(tree::Block& b, ExprId e) override;
  tree::Expr declare(tree::Block& b, ExprId e, const std::string& name, tree::Expr value) override;
  tree::Expr offset_in_panels(const Access& access, const Layout& layout) const;

  Table<int, ExprId> operations_;  ///< by expression: how many operations read it
  Table<int, ExprId> reads_;       ///< the same with the steps that reduce or store it
  std::map<ExprId, std::set<int>> axes_of_;
  Unrolled* unrolled_ = nullptr;  ///< those around what is evaluated
};

/// Every load that an expression is made of.
void each_load(const Values& v, ExprId e, const std::function<void(const Access&)>& visit);

}  // namespace tessera::codegen::cpu
