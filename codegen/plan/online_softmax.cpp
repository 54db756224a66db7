#include "codegen/plan/online_softmax.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <utility>
#include <vector>

#include "codegen/kernels/query.hpp"

namespace tessera::codegen {

namespace {

/// By how much the place of an access moves from one point of an axis to the next, for each dim.
std::vector<std::int64_t> step_of(const Access& access, int axis) {
  std::vector<std::int64_t> step;
  for (const Affine& index : access.index) {
    step.push_back(0);
    for (const Affine::Part& part : index.parts)
      if (part.axis == axis) step.back() += part.coefficient;
  }
  return step;
}

/// Whether a block of keys is to a kernel as the first ones from another address on: no tensor is read along the keys
/// in two ways, no place is compared, and no dropout's factor is drawn for a key. A causal mask compares places: what
/// has one keeps the bits of a step, which reads all keys up to its own.
bool is_alike_in_blocks(const Kernel& k, const AttentionAxes& axes) {
  std::map<std::pair<TensorId, int>, std::vector<std::int64_t>> steps;
  bool alike = !k.axes[axes.keys].last.valid() &&
               ranges::all_of(k.expressions, [](const Expression& e) { return e.element.parts.empty(); });
  for_each_access(k, [&](const Access& a, bool) {
    const std::vector<std::int64_t> step = step_of(a, axes.keys);
    alike &= steps.try_emplace({a.tensor, a.shift}, step).first->second == step;
  });
  return alike;
}

/// Whether the keys are the last dim of an access, and stand there alone.
bool ends_in(const Access& access, int keys) { return axis_along(access.index.back()) == keys; }

/// Whether a kernel stores row max and row sum of exponentials, the exponentials beside it, and then numbers of rows.
bool is_softmax(const KernelProgram& program, const Kernel& k, int keys) {
  const std::vector<int> row{keys};
  if (k.steps.size() < 3) return false;
  const Step &most = k.steps[0], &total = k.steps[1];
  if (!most.reduces || most.reduction != Reduction::maximum || most.over != row || !most.stores.empty() ||
      !total.reduces || total.reduction != Reduction::sum || total.over != row ||
      !is_op(k, total.value, graph::Op::exp))
    return false;
  const ExprId exponent = k.expressions[total.value].a;
  return is_op(k, exponent, graph::Op::subtract) && is_local(k, k.expressions[exponent].b, 0) &&
         ranges::all_of(total.stores,
                        [&](const Step::Store& s) {
                          return same(k, s.value, total.value) && ends_in(s.to, keys) &&
                                 program.tensors[s.to.tensor].storage == Storage::registers;
                        }) &&
         std::all_of(k.steps.begin() + 2, k.steps.end(), [](const Step& s) { return !s.reduces && s.over.empty(); });
}

/// An expression with the value of what a step reduces in the place of every local that names it.
ExprId with_value(Kernel& k, ExprId e, const std::vector<ExprId>& locals, int step, ExprId value) {
  for (const ExprId local : locals)
    if (is_local(k, local, step)) e = replaced(k, e, local, value);
  return e;
}

/// Builds what goes on from block to block: tensors of a block's queries, and the kernels around the other three.
class Blocks {
 public:
  Blocks(KernelProgram& program, Kernel& softmax, Kernel& mix, const ForwardAxes& axes)
      : program_(program), softmax_(softmax), mix_(mix), softmax_axes_(axes.softmax), axes_(axes.mix) {
    most_ = add("row_max", false), total_ = add("row_sum", false), factor_ = add("factor", false);
    weighted_ = add("of_block", true), all_ = add("so_far", true);
  }

  /// What is there before the first block: no row max, which is the least number, so that masked keys, whose scores are
  /// minus infinity, are exponentials of that and not of no number; and sums of 0.
  Kernel begin() const {
    Kernel k = around("_begin", Anchor::row);
    k.axes[columns()].inner = true;
    Step rows, columns_of_row;
    rows.stores = {{of_rows(most_, own()), push_constant(k, std::numeric_limits<float>::lowest())},
                   {of_rows(total_, own()), push_constant(k, 0)}};
    columns_of_row.over = {columns()};
    columns_of_row.stores = {{of_columns(all_, own(), columns()), push_constant(k, 0)}};
    k.steps = {rows, columns_of_row};
    return k;
  }

  /// Has the softmax go on from row max and row sum of the blocks before.
  void continue_softmax() const {
    Kernel& k = softmax_;
    std::vector<ExprId> locals;
    for (const ExprId e : k.expressions.ids())
      if (k.expressions[e].kind == Expression::Kind::local) locals.push_back(e);
    const ExprId before = push_load(k, of_rows(most_, softmax_axes_));
    const ExprId most = push_op(k, graph::Op::maximum, push_local(k, 0), before);
    k.steps[1].value = with_value(k, k.steps[1].value, locals, 0, most);
    for (Step::Store& s : k.steps[1].stores) s.value = k.steps[1].value;
    const ExprId factor = push_op(k, graph::Op::exp, push_op(k, graph::Op::subtract, before, most));
    const ExprId earlier = push_op(k, graph::Op::multiply, push_load(k, of_rows(total_, softmax_axes_)), factor);
    const ExprId total = push_op(k, graph::Op::add, earlier, push_local(k, 1));
    for (std::size_t s = 2; s < k.steps.size(); ++s)
      for (Step::Store& store : k.steps[s].stores)
        store.value = with_value(k, with_value(k, store.value, locals, 0, most), locals, 1, total);
    // What is read of the state stands before what is stored of it.
    Step state;
    state.stores = {{of_rows(factor_, softmax_axes_), factor},
                    {of_rows(total_, softmax_axes_), total},
                    {of_rows(most_, softmax_axes_), most}};
    k.steps.push_back(state);
    remove_dead_expressions(k);
  }

  /// Takes the epilogue out of the mix, which stores plain sums of a block, and puts it behind what adds these to the
  /// rescaled sums of the blocks before. All blocks store results; those of the last one stay.
  Kernel rescale() const {
    Kernel k = around("_rescale", Anchor::elementwise);
    const Access so_far = of_columns(all_, own(), columns());
    const ExprId before = push_op(k, graph::Op::multiply, push_load(k, so_far), push_load(k, of_rows(factor_, own())));
    const ExprId sum = push_op(k, graph::Op::add, before, push_load(k, of_columns(weighted_, own(), columns())));
    std::map<int, int> axis_of{{axes_.queries, own().queries}, {mix_.gemm.columns, columns()}};
    for (std::size_t i = 0; i < axes_.heads.size(); ++i) axis_of[axes_.heads[i]] = static_cast<int>(i);
    std::set<ExprId> needed;
    for (const Step::Store& store : mix_.steps[1].stores) reach(mix_, store.value, needed);
    const auto here = [&](Affine& index) {
      for (Affine::Part& part : index.parts) part.axis = axis_of.at(part.axis);
      std::sort(index.parts.begin(), index.parts.end());
    };
    std::map<ExprId, ExprId> expression_of;
    ExprId of_block;
    for (const ExprId e : needed) {
      Expression x = mix_.expressions[e];
      if (x.kind == Expression::Kind::local) {
        expression_of[e] = sum;
        of_block = e;
        continue;
      }
      for (ExprId* operand : {&x.a, &x.b, &x.c})
        if (operand->valid()) *operand = expression_of.at(*operand);
      for_each_index(x, here);
      expression_of[e] = push(k, std::move(x));
    }
    Step step;
    for (const Step::Store& store : mix_.steps[1].stores) {
      step.stores.push_back({store.to, expression_of.at(store.value)});
      for (Affine& index : step.stores.back().to.index) here(index);
    }
    step.stores.push_back({so_far, sum});
    k.steps = {step};
    mix_.steps[1].stores = {{of_columns(weighted_, axes_, mix_.gemm.columns), of_block}};
    remove_dead_expressions(mix_);
    return k;
  }

 private:
  TensorId add(const char* what, bool with_columns) const {
    Tensor t;
    t.name = mix_.name + "." + what;
    t.region = mix_.region;
    t.storage = Storage::registers;
    for (const int head : axes_.heads) t.shape.push_back(mix_.axes[head].dim);
    t.shape.push_back(mix_.axes[axes_.queries].dim);
    if (with_columns) t.shape.push_back(mix_.axes[mix_.gemm.columns].dim);
    const TensorId id = program_.tensors.next();
    program_.tensors.push_back(std::move(t));
    return id;
  }

  AttentionAxes own() const { return axes_around(axes_); }
  int columns() const { return own().queries + 1; }

  Kernel around(const char* what, Anchor anchor) const {
    Kernel k;
    k.name = mix_.name + what;
    k.anchor = anchor;
    k.region = mix_.region;
    k.nodes = mix_.nodes;
    for (const int head : axes_.heads) k.axes.push_back(mix_.axes[head]);
    k.axes.push_back(mix_.axes[axes_.queries]);
    k.axes.push_back(mix_.axes[mix_.gemm.columns]);
    return k;
  }

  static Access of_rows(TensorId tensor, const AttentionAxes& axes) {
    Access a{tensor, 0, {}};
    for (const int head : axes.heads) a.index.push_back({0, {{head, 1}}});
    a.index.push_back({0, {{axes.queries, 1}}});
    return a;
  }
  static Access of_columns(TensorId tensor, const AttentionAxes& axes, int column) {
    Access a = of_rows(tensor, axes);
    a.index.push_back({0, {{column, 1}}});
    return a;
  }
  KernelProgram& program_;
  Kernel &softmax_, &mix_;
  AttentionAxes softmax_axes_, axes_;
  TensorId most_, total_, factor_;  ///< of a row: max, sum of exponentials, what rescales what was summed before
  TensorId weighted_, all_;         ///< values, weighed by a block's exponentials, and by all up to here
};

}  // namespace

AttentionAxes axes_around(const AttentionAxes& of_mix) {
  AttentionAxes axes{static_cast<int>(of_mix.heads.size()), {}};
  for (int i = 0; i < axes.queries; ++i) axes.heads.push_back(i);
  return axes;
}

bool go_by_keys(KernelProgram& program, Fused& fused, Kernel& mix, const ForwardAxes& axes) {
  const Kernel& scores = fused.part(Fused::Role::scores);
  Kernel softmax = fused.part(Fused::Role::softmax);
  const Step& result = mix.steps[1];
  if (unit_of_keys(axes.added.across) > keys_of_forward_block || !is_alike_in_blocks(scores, axes.scores) ||
      !is_alike_in_blocks(softmax, axes.softmax) || !is_alike_in_blocks(mix, axes.mix) ||
      !ends_in(scores.steps[1].stores[0].to, axes.scores.keys) ||
      (fused.has(Fused::Role::added) && !is_alike_in_blocks(fused.part(Fused::Role::added), axes.added)) ||
      !is_softmax(program, softmax, axes.softmax.keys) || result.reduces || !result.over.empty() ||
      mix.steps.size() != 2)
    return false;
  const Blocks blocks(program, softmax, mix, axes);
  blocks.continue_softmax();
  fused.part(Fused::Role::softmax) = std::move(softmax);
  fused.roles.insert(fused.roles.end(), {Fused::Role::begin, Fused::Role::rescale});
  fused.parts.push_back(blocks.begin());
  fused.parts.push_back(blocks.rescale());
  return true;
}

}  // namespace tessera::codegen
