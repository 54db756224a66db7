#include "codegen/kernels/query.hpp"

#include <algorithm>
#include <optional>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/count_if.hpp>
#include <range/v3/algorithm/find_if.hpp>

#include "codegen/passes/op.hpp"

namespace tessera::codegen {

namespace {

/// Whether two accesses of two kernels run through a tensor alike; `axes`: which of the first one's axes each of the
/// second one's is.
bool runs_alike(const Kernel& k, const Access& a, const Kernel& other, const Access& b, std::map<int, int>& axes) {
  if (a.tensor != b.tensor || a.shift != b.shift || a.index.size() != b.index.size()) return false;
  for (std::size_t d = 0; d < a.index.size(); ++d) {
    const Affine &x = a.index[d], &y = b.index[d];
    if (x.offset != y.offset || x.parts.size() != y.parts.size()) return false;
    for (std::size_t i = 0; i < x.parts.size(); ++i) {
      const int mine = x.parts[i].axis, its = y.parts[i].axis;
      if (x.parts[i].coefficient != y.parts[i].coefficient || axes.try_emplace(its, mine).first->second != mine ||
          k.axes[mine].dim != other.axes[its].dim)
        return false;
    }
  }
  return true;
}

}  // namespace

std::int64_t size_of(const Kernel& k, int axis) {
  const Dim& dim = k.axes[axis].dim;
  return dim.known() ? dim.value() : -1;
}

bool counts_slots_of(const KernelProgram& program, int region, const Tensor& t) {
  return region != 0 && (region == t.region || program.graph.regions[region].mirror == t.region);
}

bool same(const Kernel& k, ExprId a, ExprId b) {
  if (a == b) return true;
  if (!a.valid() || !b.valid()) return false;
  const Expression &x = expression_of(k, a), &y = expression_of(k, b);
  return x.kind == y.kind && x.op == y.op && x.value == y.value && x.access == y.access && x.step == y.step &&
         x.element == y.element && x.kind != Expression::Kind::keep && x.kind != Expression::Kind::extent &&
         same(k, x.a, y.a) && same(k, x.b, y.b) && same(k, x.c, y.c);
}

std::set<int> axes_below(const Kernel& k, ExprId e) {
  std::set<ExprId> seen;
  std::set<int> axes;
  reach(k, e, seen);
  for (const ExprId below : seen)
    for_each_index(expression_of(k, below), [&](const Affine& index) {
      for (const Affine::Part& part : index.parts) axes.insert(part.axis);
    });
  return axes;
}

std::set<TensorId> stored_by(const Kernel& k) {
  std::set<TensorId> tensors;
  for_each_access(k, [&](const Access& a, bool writes) {
    if (writes) tensors.insert(a.tensor);
  });
  return tensors;
}

std::set<TensorId> loaded_by(const Kernel& k) {
  std::set<TensorId> tensors;
  for_each_access(k, [&](const Access& a, bool writes) {
    if (!writes) tensors.insert(a.tensor);
  });
  return tensors;
}

std::set<TensorId> tensors_of(const Kernel& k) {
  std::set<TensorId> tensors;
  for_each_access(k, [&](const Access& a, bool) { tensors.insert(a.tensor); });
  return tensors;
}

bool meet(const std::set<TensorId>& some, const std::set<TensorId>& others) {
  return ranges::any_of(some, [&](TensorId t) { return others.contains(t); });
}

std::vector<int> mapped(const std::vector<int>& axes, const std::vector<int>& from, const std::vector<int>& to) {
  std::vector<int> result;
  for (int a : axes) {
    const auto at = std::find(from.begin(), from.end(), a);
    result.push_back(at == from.end() ? -1 : to[at - from.begin()]);
  }
  return result;
}

bool sums_rows(const Kernel& k, const Step& step) {
  return k.anchor == Anchor::row && step.reduces && step.stores.size() == 1 && ranges::any_of(step.over, [&](int a) {
           return a >= 0 && a < static_cast<int>(k.axes.size()) && !k.axes[a].inner;
         });
}

void remove_dead_expressions(Kernel& k) {
  std::set<ExprId> needed;
  for (const Step& s : k.steps) {
    if (s.reduces) reach(k, s.value, needed);
    for (const Step::Store& store : s.stores) reach(k, store.value, needed);
  }
  std::map<ExprId, ExprId> number;
  Table<Expression, ExprId> kept;
  for (ExprId e : needed) {
    number[e] = kept.add(expression_of(k, e));
    Expression& x = kept.back();
    for (ExprId* operand : {&x.a, &x.b, &x.c})
      if (operand->valid()) *operand = number.at(*operand);
  }
  k.expressions = std::move(kept);
  for (Step& s : k.steps) {
    if (s.reduces) s.value = number.at(s.value);
    for (Step::Store& store : s.stores) store.value = number.at(store.value);
  }
}

namespace {

const graph::Line* line_of(const graph::Graph& graph, const graph::Node& node) {
  return node.line == graph::none ? nullptr : &graph.lines[static_cast<std::size_t>(node.line)];
}

/// For a node that no module recorded, as a copy of a parameter: the line of the other nodes at its path, and the
/// struct alone where they have several. None at the root, where a loss stands as well.
std::optional<graph::Line> line_at_path(const graph::Graph& graph, const std::string& path) {
  std::optional<graph::Line> found;
  if (path.empty()) return found;
  for (const graph::Node& other : graph.nodes) {
    const graph::Line* line = other.path == path ? line_of(graph, other) : nullptr;
    if (!line) continue;
    if (!found) found = *line;
    if (line->module != found->module || line->file != found->file) return {};
    if (line->text != found->text) found->text.clear();
  }
  return found;
}

/// Of the kernel's product, else of its reduction, else of the first node that has one.
std::optional<graph::Line> line_of(const graph::Graph& graph, const Kernel& k) {
  const graph::Line* found = nullptr;
  int least = 0;
  for (const NodeId id : k.nodes) {
    const graph::Node& n = graph[id];
    const graph::Line* line = line_of(graph, n);
    if (!line) continue;
    const int order = 2 * (n.op == graph::Op::einsum ? 0 : is_reduction(n.op) ? 1 : 2) + line->text.empty();
    if (found && order >= least) continue;
    found = line;
    least = order;
  }
  if (found) return *found;
  for (const NodeId id : k.nodes)
    if (std::optional<graph::Line> line = line_at_path(graph, graph[id].path)) return line;
  return {};
}

}  // namespace

std::string declared_at(const KernelProgram& program, const Kernel& k) {
  constexpr std::size_t most = 117;  // and "// " before
  const std::optional<graph::Line> found = line_of(program.graph, k);
  if (!found) return "";
  std::string text = found->module + ", " + found->file + (found->text.empty() ? "" : ": ") + found->text;
  if (text.size() <= most) return text;
  text.resize(most - 3);
  while ((static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) text.pop_back();  // within a character of UTF-8
  if (static_cast<unsigned char>(text.back()) & 0x80) text.pop_back();
  return text + "...";
}

bool sums_operand(const Kernel& gemm, const Access& operand, int across, const std::vector<int>& depth,
                  const Kernel& sum) {
  const Step& reduction = sum.steps.front();
  if (sum.region != gemm.region || !reduction.reduces || reduction.reduction != Reduction::sum) return false;
  const Expression& value = expression_of(sum, reduction.value);
  if (value.kind != Expression::Kind::load) return false;
  std::map<int, int> axes;  // of the GEMM, by the sum's
  if (!runs_alike(gemm, operand, sum, value.access, axes) || axes.size() != sum.axes.size()) return false;
  const auto row = ranges::find_if(axes, [&](const auto& pair) { return pair.second == across; });
  if (row == axes.end() || sum.axes[row->first].inner ||
      ranges::count_if(sum.axes, [](const Axis& a) { return !a.inner; }) != 1)
    return false;
  std::vector<int> over;
  for (int a : reduction.over) over.push_back(axes.at(a));
  return std::is_permutation(over.begin(), over.end(), depth.begin(), depth.end());
}

}  // namespace tessera::codegen
