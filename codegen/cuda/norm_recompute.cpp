#include "codegen/cuda/norm_recompute.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/count.hpp>

#include "codegen/cuda/column_reduction.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/query.hpp"

namespace tessera::codegen::cuda {

namespace {

/// Where a kernel of rows stores what can be recomputed.
struct Result {
  std::size_t step = 0, store = 0;
  ExprId input;              ///< the load that it is made of, an element for each of its own
  std::vector<ExprId> rows;  ///< expressions that are the same for a whole row
};

/// Calls f(expression) for those below `e`, but for what is below one that f gives true for.
template <class F>
void walk(const Kernel& k, ExprId e, F f) {
  if (!e.valid() || f(e)) return;
  const Expression& x = expression_of(k, e);
  if (x.kind == Expression::Kind::op)
    for (ExprId operand : {x.a, x.b, x.c}) walk(k, operand, f);
}

bool knows(const Access& access, int axis) {
  return ranges::any_of(access.index, [&](const Affine& index) {
    return ranges::any_of(index.parts, [&](const Affine::Part& part) { return part.axis == axis; });
  });
}

class Norm {
 public:
  Norm(const KernelProgram& program, const Kernel& kernel) : program_(program), k_(kernel) {}

  std::optional<Result> result() const {
    if (k_.anchor != Anchor::row || k_.across_batch || !k_.fused.empty()) return {};
    if (steps_of_row(k_) != k_.steps.size()) return {};  // sums over its rows come last
    for (std::size_t s = 0; s < k_.steps.size(); ++s)
      for (std::size_t i = 0; i < k_.steps[s].stores.size(); ++i)
        if (const std::optional<Result> found = at(s, i)) return found;
    return {};
  }

 private:
  const Tensor& tensor(TensorId t) const { return program_.tensors[t]; }
  bool kept(TensorId t) const { return tensor(t).storage == Storage::scratch && tensor(t).element == DType::real; }

  std::optional<Result> at(std::size_t s, std::size_t i) const {
    const Step& step = k_.steps[s];
    const Access& to = step.stores[i].to;
    const std::vector<int> along = axes_along(to);
    if (step.reduces || step.over.size() != 1 || along.empty() || along.back() != step.over[0]) return {};
    if (!kept(to.tensor) || tensor(to.tensor).carry || to.shift) return {};
    const int inner = step.over[0];
    Result found{s, i, {}, {}};
    bool right = true;
    walk(k_, step.stores[i].value, [&](ExprId e) {
      const Expression& x = expression_of(k_, e);
      if (depends_on(e, inner)) {
        if (x.kind == Expression::Kind::load) {
          right = right && (!found.input.valid() || found.input == e) && axes_along(x.access) == along;
          found.input = e;
        } else {
          right = right && x.kind == Expression::Kind::op;
        }
        return false;
      }
      right = right && (x.kind == Expression::Kind::op || x.kind == Expression::Kind::constant ||
                        x.kind == Expression::Kind::local || x.kind == Expression::Kind::load);
      if (x.kind != Expression::Kind::constant && !ranges::count(found.rows, e)) found.rows.push_back(e);
      return true;
    });
    if (!right || !found.input.valid() || found.rows.empty() || !can_keep(found.input, to.tensor)) return {};
    return read_by_rows_alone(to.tensor) ? std::optional(found) : std::nullopt;
  }

  bool depends_on(ExprId e, int axis) const {
    bool found = false;
    walk(k_, e, [&](ExprId below) {
      const Expression& x = expression_of(k_, below);
      found = found || (x.kind == Expression::Kind::load && knows(x.access, axis)) ||
              x.kind == Expression::Kind::index || x.kind == Expression::Kind::index_equals ||
              x.kind == Expression::Kind::keep;
      return false;
    });
    return found;
  }

  /// Whether the input can be there for as long as the result would be.
  bool can_keep(ExprId input, TensorId result) const {
    const Access& access = expression_of(k_, input).access;
    const Tensor& t = tensor(access.tensor);
    if (!kept(access.tensor) || stored_by(k_).contains(access.tensor)) return false;
    const graph::Region& layers = program_.graph.regions[t.region];
    if (tensor(result).slots == 1) {
      if (k_.region != 0) return false;
      if (!t.carry) return t.region == 0;
      // What the last layer left nobody overwrites; layers would take it for one of theirs.
      return access.shift == layers.count && !touched(result, [](const Kernel& other) { return other.region != 0; });
    }
    if (t.region != tensor(result).region || t.region != k_.region) return false;
    if (t.carry) return !layers.reversed;  // other layers count its slots as the forward ones do
    return !touched(access.tensor, [&](const Kernel& other) { return other.region != k_.region; });
  }

  /// Whether such a kernel reads or stores a tensor.
  template <class F>
  bool touched(TensorId tensor, F by) const {
    return ranges::any_of(program_.kernels,
                          [&](const Kernel& other) { return by(other) && tensors_of(other).contains(tensor); });
  }

  /// Only kernels that have whole rows, too, read it.
  bool read_by_rows_alone(TensorId result) const {
    bool read = false, right = true;
    for (const Kernel& other : program_.kernels) {
      if (&other == &k_) {
        right = right && !loaded_by(other).contains(result);
        continue;
      }
      if (!tensors_of(other).contains(result)) continue;
      read = true;
      right = right && other.anchor == Anchor::row && other.fused.empty() && !stored_by(other).contains(result);
      for (const Expression& e : other.expressions)
        if (e.kind == Expression::Kind::load && e.access.tensor == result)
          right = right && !axes_along(e.access).empty() && e.access.shift == 0;
    }
    return read && right;
  }

  const KernelProgram& program_;
  const Kernel& k_;
};

Access moved(Access access, const std::vector<int>& from, const std::vector<int>& to) {
  for (Affine& index : access.index) {
    for (Affine::Part& part : index.parts) part.axis = mapped({part.axis}, from, to)[0];
    std::sort(index.parts.begin(), index.parts.end());
  }
  return access;
}

/// The access by which a kernel of rows stores such an expression, for each row; it does so from now on.
Access stored(KernelProgram& program, Kernel& k, ExprId e, const Access& result) {
  Access to = result;
  to.index.pop_back();
  Tensor t = program.tensors[result.tensor];
  const auto lives_as_long = [&](const Tensor& other) {
    return other.storage == t.storage && other.element == t.element && other.region == t.region &&
           other.slots == t.slots && !other.carry;
  };
  for (const Step& s : k.steps)
    for (const Step::Store& store : s.stores)
      if (store.value == e && !s.reduces && store.to.index == to.index && store.to.shift == 0 &&
          lives_as_long(program.tensors[store.to.tensor]))
        return store.to;
  t.name += ".row";
  t.shape.pop_back();
  t.node = graph::none;
  to.tensor = program.tensors.next();
  program.tensors.push_back(std::move(t));
  Step keep;
  keep.stores = {{to, e}};
  k.steps.push_back(std::move(keep));
  return to;
}

/// Computes again, in a reader, what it read.
void compute_again(Kernel& reader, const Kernel& norm, const Step::Store& result, ExprId input,
                   const std::map<ExprId, Access>& of_row) {
  const std::vector<int> from = axes_along(result.to);
  Table<Expression, ExprId> expressions;
  std::map<ExprId, ExprId> number;
  for (const ExprId e : reader.expressions.ids()) {
    Expression x = expression_of(reader, e);
    if (x.kind == Expression::Kind::load && x.access.tensor == result.to.tensor) {
      const std::vector<int> to = axes_along(x.access);
      std::map<ExprId, ExprId> copied;
      const auto copy = [&](auto&& self, ExprId of) -> ExprId {
        if (!of.valid()) return of;
        if (const auto at = copied.find(of); at != copied.end()) return at->second;
        Expression y = expression_of(norm, of);
        if (const auto row = of_row.find(of); row != of_row.end()) {
          y = {};
          y.kind = Expression::Kind::load;
          y.access = moved(row->second, from, to);
        } else if (of == input) {
          y.access = moved(y.access, from, to);
        } else {
          for (ExprId* operand : {&y.a, &y.b, &y.c}) *operand = self(self, *operand);
        }
        return copied[of] = expressions.add(std::move(y));
      };
      number[e] = copy(copy, result.value);
      continue;
    }
    for (ExprId* operand : {&x.a, &x.b, &x.c})
      if (operand->valid()) *operand = number.at(*operand);
    number[e] = expressions.add(std::move(x));
  }
  reader.expressions = std::move(expressions);
  for (Step& s : reader.steps) {
    if (s.reduces) s.value = number.at(s.value);
    for (Step::Store& store : s.stores) store.value = number.at(store.value);
  }
}

}  // namespace

void recompute_norms(KernelProgram& program) {
  for (std::size_t i = 0; i < program.kernels.size(); ++i) {
    const std::optional<Result> found = Norm(program, program.kernels[i]).result();
    if (!found) continue;
    Kernel norm = program.kernels[i];
    const Step::Store result = norm.steps[found->step].stores[found->store];
    std::map<ExprId, Access> of_row;
    for (ExprId e : found->rows) of_row[e] = stored(program, norm, e, result.to);
    for (Kernel& reader : program.kernels)
      if (loaded_by(reader).contains(result.to.tensor))
        compute_again(reader, program.kernels[i], result, found->input, of_row);

    Tensor &made = program.tensors[result.to.tensor],
           &input = program.tensors[expression_of(norm, found->input).access.tensor];
    if (made.slots > 1) input.slots = std::max(input.slots, made.slots + (input.carry ? 1 : 0));
    made.storage = Storage::registers;
    std::vector<Step::Store>& stores = norm.steps[found->step].stores;
    stores.erase(stores.begin() + static_cast<std::ptrdiff_t>(found->store));
    if (stores.empty()) {
      norm.steps.erase(norm.steps.begin() + static_cast<std::ptrdiff_t>(found->step));
      for (Expression& e : norm.expressions)
        if (e.kind == Expression::Kind::local && e.step > static_cast<int>(found->step)) --e.step;
    }
    remove_dead_expressions(norm);
    program.kernels[i] = std::move(norm);
  }
}

}  // namespace tessera::codegen::cuda
