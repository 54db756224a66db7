#include "codegen/kernels/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find_if.hpp>
#include <set>
#include <tuple>

#include "codegen/error.hpp"
#include "codegen/kernels/fuse.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::Output;

namespace {

class Lowering {
 public:
  Lowering(const Graph& graph, ProgramKind kind, std::string name)
      : graph_(legalise(graph)), analysis_(analyse(graph_)) {
    grouping_ = fuse(graph_, analysis_);
    out_.kind = kind;
    out_.name = std::move(name);
    find_loss();
  }

  KernelProgram run() {
    find_stored();
    for (std::size_t g = 0; g < grouping_.groups.size(); ++g) out_.kernels.push_back(lower(static_cast<int>(g)));
    out_.order = grouping_.order;
    name_kernels();
    out_.graph = std::move(graph_);
    return std::move(out_);
  }

 private:
  Role role(NodeId id) const { return analysis_.role[id]; }
  const Claim& claim(NodeId id) const { return analysis_.claim[id]; }
  int group_of(NodeId id) const { return grouping_.group[id]; }

  void find_loss() {
    for (const Output& o : graph_.outputs)
      if (o.kind == Output::Kind::loss) loss_ = o.node;
  }

  /// Members that somebody outside their kernel reads, or that have a place to be written to.
  void find_stored() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      auto id = static_cast<NodeId>(i);
      if (claim(id).kind != Claim::Kind::none && role(id) == Role::member) stored_.insert(id);
      if (role(id) == Role::member) mark_reads(id, group_of(id));
    }
  }
  void mark_reads(NodeId id, int reader) {
    for (NodeId o : graph_[id].operands) {
      if (role(o) == Role::inlined)
        mark_reads(o, reader);
      else if (role(o) == Role::member && group_of(o) != reader)
        stored_.insert(o);
    }
  }

  // ---- tensors -------------------------------------------------------------------------------------------------

  std::string tensor_name(NodeId id) const {
    const Node& n = graph_[id];
    if (!n.name.empty()) return n.name;
    std::string backward = loss_ != graph::none && id > loss_ ? "d_" : "";
    return fmt::format("{}{}{}{}", backward, n.path, n.path.empty() ? "" : ".", op_name(n.op));
  }

  TensorId tensor_of(NodeId id) {
    auto [at, fresh] = tensor_.try_emplace(id, out_.tensors.next());
    if (!fresh) return at->second;
    const Node& n = graph_[id];
    Tensor t;
    t.node = id;
    t.name = tensor_name(id);
    t.shape = n.shape;
    t.type = n.type;
    t.region = n.region;
    const Claim& c = claim(id);
    if (n.op == Op::input)
      t.storage = n.type == graph::Type::integer ? Storage::labels : Storage::input;
    else if (n.op == Op::parameter) {
      t.storage = Storage::parameter;
      t.parameter = id;
      t.slots = graph_.regions[n.region].count;
    } else if (n.op == Op::table)
      t.storage = Storage::table;
    else if (n.op == Op::cache) {
      t.storage = Storage::cache;
      t.slots = graph_.regions[n.region].count;
    } else if (c.kind == Claim::Kind::output) {
      const Output& o = graph_.outputs[c.output];
      t.name = o.name;
      t.storage = o.kind == Output::Kind::loss    ? Storage::loss
                  : o.kind == Output::Kind::value ? Storage::output
                                                  : Storage::gradient;
      t.parameter = o.parameter;
      if (o.kind != Output::Kind::loss) t.slots = graph_.regions[n.region].count;
    } else if (n.op == Op::carry) {
      t.carry = true;
      t.slots = analysis_.kept[id] ? graph_.regions[n.region].count + 1 : 2;
    } else if (analysis_.kept[id]) {
      t.slots = graph_.regions[n.region].count;
    }
    if (int n = ++named_[t.name]; n > 1 && t.storage == Storage::scratch) t.name += fmt::format("_{}", n);
    out_.tensors.push_back(std::move(t));
    return at->second;
  }

  /// Where element `index` of node `id` stands in memory.
  Access locate(NodeId id, std::vector<Affine> index) {
    const Claim& c = claim(id);
    switch (c.kind) {
      case Claim::Kind::part: {
        auto axis = static_cast<std::size_t>(graph_[c.by].axes[0]);
        index[axis].offset += c.offset;
        return locate(c.by, std::move(index));
      }
      case Claim::Kind::merged:
        return locate(c.by, *result_index(graph_[c.by].rearrangement, index));
      case Claim::Kind::yield:
        return {tensor_of(c.by), 1, std::move(index)};
      case Claim::Kind::initial:
        return {tensor_of(c.by), 0, std::move(index)};
      case Claim::Kind::output:
      case Claim::Kind::none:
        break;
    }
    const Node& n = graph_[id];
    if (n.op == Op::carry_out) {
      NodeId carry = n.operands[0];
      return {tensor_of(carry), graph_.regions[graph_[carry].region].count, std::move(index)};
    }
    return {tensor_of(id), 0, std::move(index)};
  }

  // ---- expressions ---------------------------------------------------------------------------------------------

  struct Context {
    int group;
    Kernel kernel;
    std::map<std::pair<NodeId, std::vector<Affine>>, ExprId> known;
    std::map<NodeId, ExprId> local;  ///< of a reduced node: its local expression
  };

  static ExprId push(Context& c, Expression e) { return c.kernel.expressions.add(std::move(e)); }

  /// The expression for element `index` of node `id`.
  ExprId read(Context& c, NodeId id, const std::vector<Affine>& index) {
    auto key = std::make_pair(id, index);
    if (auto at = c.known.find(key); at != c.known.end()) return at->second;
    const ExprId e = make(c, id, index);
    c.known[key] = e;
    return e;
  }

  ExprId make(Context& c, NodeId id, const std::vector<Affine>& index) {
    const Node& n = graph_[id];
    bool here = role(id) == Role::member && group_of(id) == c.group;
    if (here && c.local.contains(id)) return c.local.at(id);
    if (!here && role(id) != Role::inlined) return push(c, load(locate(id, index)));
    if (n.op == Op::constant) {
      Expression e;
      e.value = n.value;
      return push(c, e);
    }
    if (n.op == Op::extent) {
      Expression e;
      e.kind = Expression::Kind::extent;
      e.dim = n.dim;
      return push(c, e);
    }
    if (n.op == Op::arange) {
      Expression e;
      e.kind = Expression::Kind::index;
      e.element = index[0];
      return push(c, e);
    }
    if (n.op == Op::broadcast) {
      std::vector<Affine> inner;
      for (int a : n.axes) inner.push_back(index[a]);
      return read(c, n.operands[0], inner);
    }
    if (n.op == Op::slice) {
      std::vector<Affine> shifted = index;
      shifted[n.axes[0]].offset += n.offset;
      return read(c, n.operands[0], shifted);
    }
    if (n.op == Op::unfold) {
      const int kernel = n.axes[0];
      std::vector<Affine> place = index;
      place[kernel] = index[kernel] * n.dilation + index[kernel + 1] * n.stride;
      place[kernel].offset += n.offset;
      place.erase(place.begin() + kernel + 1);
      return read(c, n.operands[0], place);
    }
    if (n.op == Op::rearrange)
      return read(c, n.operands[0], here ? copied_index(n) : *operand_index(n.rearrangement, index));
    if (n.op == Op::integers) return read(c, n.operands[0], index);  // reals that are compared as they are
    if (n.op == Op::one_hot) {
      Expression e;
      e.kind = Expression::Kind::index_equals;
      e.element = index.back();
      e.a = read(c, n.operands[0], {index.begin(), index.end() - 1});
      if (c.kernel.expressions[e.a].kind != Expression::Kind::load)
        throw Error(fmt::format("node %{}: the integers of a one-hot row are not stored", id));
      return push(c, e);
    }
    if (n.op == Op::keep) return push(c, keep(c, n, index));
    if (n.op == Op::cache) {
      std::vector<Affine> row = index;
      row[n.axes[0]] = Affine{};
      return read(c, n.operands[0], row);
    }
    if (n.op == Op::copy) return read(c, n.operands[0], index);
    Expression e;
    e.kind = Expression::Kind::op;
    e.op = n.op;
    e.a = read(c, n.operands[0], graph_[n.operands[0]].shape.empty() ? std::vector<Affine>{} : index);
    if (n.operands.size() > 1)
      e.b = read(c, n.operands[1], graph_[n.operands[1]].shape.empty() ? std::vector<Affine>{} : index);
    if (n.operands.size() > 2)
      e.c = read(c, n.operands[2], graph_[n.operands[2]].shape.empty() ? std::vector<Affine>{} : index);
    return push(c, e);
  }

  /// Dropout's factor for an element: a function of the random state, the dropout, the layer and the element's number.
  /// Rows are filled up to multiples of four, because four elements share a counter.
  Expression keep(Context& c, const Node& n, const std::vector<Affine>& index) {
    Expression e;
    e.kind = Expression::Kind::keep;
    e.value = n.value;
    e.dropout = n.offset;
    e.a = read(c, n.operands[0], {Affine{}});
    std::int64_t stride = 1;
    for (std::size_t d = index.size(); d-- > 0;) {
      e.element = e.element + index[d] * stride;
      if (d) stride *= d + 1 == index.size() ? (extent(n.shape[d]).fixed + 3) / 4 * 4 : extent(n.shape[d]).fixed;
    }
    return e;
  }

  static Expression load(Access access) {
    Expression e;
    e.kind = Expression::Kind::load;
    e.access = std::move(access);
    return e;
  }

  /// A copying rearrangement's kernel iterates over atoms, in the order of the result; its operand's index follows.
  static std::vector<Affine> copied_index(const Node& n) {
    graph::Rearrangement r = canonical(n.rearrangement);
    std::vector<Affine> atom(r.atoms.size());
    int axis = 0;
    for (const auto& dim : r.to)
      for (int a : dim) atom[a] = axis_index(axis++);
    std::vector<Affine> index;
    for (const auto& dim : r.from) {
      Affine sum;
      std::int64_t stride = 1;
      for (std::size_t i = dim.size(); i-- > 0;) {
        auto a = static_cast<std::size_t>(dim[i]);
        sum = sum + atom[a] * stride;
        if (i) stride *= extent(r.atoms[a]).fixed;
      }
      index.push_back(sum);
    }
    return index;
  }

  // ---- kernels -------------------------------------------------------------------------------------------------

  Kernel lower(int g) {
    const Group& group = grouping_.groups[g];
    Context c{g, {}, {}, {}};
    c.kernel.anchor = group.anchor;
    c.kernel.region = group.region;
    c.kernel.axes = group.axes;
    c.kernel.nodes = group.nodes;
    c.kernel.across_batch = group.across_batch;
    std::vector<int> inner;
    for (std::size_t a = 0; a < group.axes.size(); ++a)
      if (group.axes[a].inner) inner.push_back(static_cast<int>(a));

    name_axes(c.kernel);
    if (const Node& n = graph_[group.nodes.front()]; n.op == Op::cache)
      c.kernel.axes[n.axes[0]].only = read(c, n.operands[1], {Affine{}});
    for (NodeId id : group.nodes) {
      const Node& n = graph_[id];
      if (n.op != Op::einsum && !is_reduction(n.op)) continue;
      Step step;
      step.reduces = true;
      step.reduction = n.op == Op::reduce_max ? Reduction::maximum : Reduction::sum;
      step.over = inner;
      step.value = n.op == Op::einsum ? product(c, n) : read(c, n.operands[0], group.full);
      Expression local;
      local.kind = Expression::Kind::local;
      local.step = static_cast<int>(c.kernel.steps.size());
      c.kernel.steps.push_back(std::move(step));
      c.local[id] = push(c, local);
    }
    // Row values first, then what spans the row.
    for (bool whole : {false, true}) {
      Step step;
      if (whole) step.over = inner;
      for (NodeId id : group.nodes) {
        if (!stored_.contains(id)) continue;
        const std::vector<Affine>& index = group.index.at(id);
        if (spans(index, inner) != whole) continue;
        step.stores.push_back({locate(id, index), read(c, id, index)});
      }
      if (!step.stores.empty()) c.kernel.steps.push_back(std::move(step));
    }
    if (group.anchor == Anchor::row) keep_summed_exponentials(c);
    return std::move(c.kernel);
  }

  /// A softmax sums exponentials and then divides each by the sum: the pass that sums them stores them, and the last
  /// pass scales what is stored, so that each is computed once. A place holds those of one softmax: of a difference of
  /// two, those of the other are computed twice.
  void keep_summed_exponentials(Context& c) {
    Kernel& k = c.kernel;
    std::set<const Step::Store*> taken;
    for (Step& sum : k.steps) {
      if (!sum.reduces || k.expressions[sum.value].op != Op::exp) continue;
      if (k.expressions[sum.value].kind != Expression::Kind::op) continue;
      for (Step::Store& store : k.steps.back().stores) {
        if (k.steps.back().over != sum.over || store.value == sum.value || !needs(k, store.value, sum.value)) continue;
        if (!taken.insert(&store).second) continue;
        keep_for_store(k, sum, sum.value, store);
        break;
      }
    }
  }

  static bool spans(const std::vector<Affine>& index, const std::vector<int>& inner) {
    for (const Affine& a : index)
      for (const Affine::Part& p : a.parts)
        if (std::find(inner.begin(), inner.end(), p.axis) != inner.end()) return true;
    return false;
  }

  /// The product that an einsum sums.
  ExprId product(Context& c, const Node& n) {
    std::map<int, int> axis;
    for (int l : n.letters.back()) axis.emplace(l, static_cast<int>(axis.size()));
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      for (int l : n.letters[k]) axis.emplace(l, static_cast<int>(axis.size()));
    ExprId result;
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      std::vector<Affine> index;
      for (int l : n.letters[k]) index.push_back(axis_index(axis.at(l)));
      const ExprId e = read(c, n.operands[k], index);
      if (!result.valid())
        result = e;
      else {
        Expression both;
        both.kind = Expression::Kind::op;
        both.op = Op::multiply;
        both.a = result;
        both.b = e;
        result = push(c, both);
      }
    }
    return result;
  }

  /// Axes are named after their dims: n for N+1; a second one of the same name is n2.
  static void name_axes(Kernel& kernel) {
    std::map<std::string, int> used;
    for (Axis& axis : kernel.axes) {
      std::string base;
      const Polynomial& shown = axis.dim.shown;
      if (shown.terms && shown.term[0].factors)
        for (char ch : shown.term[0].factor[0].name)
          base += static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
      if (base.empty()) base = "i";
      int n = ++used[base];
      axis.name = n == 1 ? base : fmt::format("{}{}", base, n);
    }
  }

  // ---- names ---------------------------------------------------------------------------------------------------

  static std::string identifier(const std::string& name) {
    std::string clean;
    for (char ch : name) {
      if (ch == '{' || ch == '}') continue;
      bool good = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
      if (good)
        clean += ch;
      else if (!clean.empty() && clean.back() != '_')
        clean += '_';
    }
    return clean;
  }

  bool is_backward(NodeId id) const { return loss_ != graph::none && id > loss_; }

  /// Whether a node is computed, by operations of its own module up to the products that they begin with, of one that
  /// `found` says yes to; itself perhaps.
  bool comes_from(NodeId id, const std::string& path, const std::function<bool(NodeId)>& found) const {
    if (found(id)) return true;
    const Node& n = graph_[id];
    if (n.path != path || n.op == Op::einsum || n.op == Op::carry_out) return false;
    return ranges::any_of(n.operands, [&](NodeId operand) { return comes_from(operand, path, found); });
  }
  bool is_softmax(NodeId id) const {
    return comes_from(id, graph_[id].path, [&](NodeId of) { return graph_[of].op == Op::reduce_max; });
  }
  /// The node whose values these are, in another order perhaps.
  NodeId without_copies(NodeId id) const {
    while (graph_[id].op == Op::copy || graph_[id].op == Op::rearrange) id = graph_[id].operands[0];
    return id;
  }

  /// Below a module: what an operand is the result of ("v_mappings.0") or the parameter that it is ("in_proj").
  std::string origin_of(NodeId id, const std::string& path) const {
    const Node* n = &graph_[id];
    while (n->op != Op::parameter && n->path == path && n->operands.size() == 1) n = &graph_[n->operands[0]];
    std::string from = n->op == Op::parameter ? n->name : n->path;
    if (!from.starts_with(path) || from.size() <= path.size()) return "";
    from.erase(0, path.empty() ? 0 : path.size() + 1);
    for (const char* const kind : {".weight", "_weight"})
      if (from.ends_with(kind)) from.erase(from.size() - std::string_view(kind).size());
    return from == "weight" ? "" : from;
  }

  /// The axis of a module's product along which its softmax runs, where it is the scores; else -1.
  int softmax_axis(NodeId product) const {
    const std::string& path = graph_[product].path;
    for (NodeId id = product + 1; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (const Node& n = graph_[id]; n.op == Op::reduce_max && n.path == path && n.axes.size() == 1 &&
                                      n.region == graph_[product].region &&
                                      comes_from(n.operands[0], path, [&](NodeId of) { return of == product; }))
        return n.axes[0];
    return -1;
  }

  /// What a product's operand is: to attention, or the result of which module below; of a list, of which element.
  std::string role_of(NodeId product, std::size_t operand) const {
    const Node& n = graph_[product];
    const std::string from = origin_of(n.operands[operand], n.path);
    std::string role;
    if (const int axis = softmax_axis(product); axis >= 0 && axis < static_cast<int>(n.letters.back().size()))
      role = ranges::contains(n.letters[operand], n.letters.back()[axis]) ? "key" : "query";
    for (std::size_t other = 0; other < n.operands.size() && role.empty(); ++other)
      if (is_softmax(n.operands[other])) role = other == operand ? "probabilities" : "value";
    if (role.empty()) return from;
    return from.find_first_of("0123456789") == std::string::npos ? role : role + "." + from;
  }

  /// The forward product of a module that has a value as an operand, and which operand it is; -1 where none has.
  std::pair<NodeId, std::size_t> product_of(NodeId value, const std::string& path) const {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()) && !is_backward(id); ++id)
      for (std::size_t k = 0; graph_[id].op == Op::einsum && graph_[id].path == path && k < 2; ++k)
        if (k < graph_[id].operands.size() && without_copies(graph_[id].operands[k]) == without_copies(value))
          return {id, k};
    return {-1, 0};
  }

  /// What a product makes: scores, a sum weighted by probabilities, the gradient of which operand.
  std::string work_of_product(NodeId id) const {
    const Node& n = graph_[id];
    const auto forward = [&](NodeId operand) { return !is_backward(without_copies(operand)); };
    const bool weighs = ranges::any_of(n.operands, [&](NodeId operand) { return is_softmax(operand); });
    if (!is_backward(id)) {
      if (softmax_axis(id) >= 0) return "scores";
      if (weighs) return "weighted_values";
    } else if (ranges::all_of(n.operands, forward)) {
      const NodeId again = product_of(n.operands[0], n.path).first;
      return again >= 0 ? "recomputed_" + work_of_product(again) : "matmul";
    }
    for (const NodeId operand : n.operands)
      if (graph_[operand].op == Op::parameter)
        if (const std::string from = origin_of(operand, n.path); !from.empty()) return from;
    for (const NodeId operand : n.operands)
      if (const auto [product, k] = product_of(operand, n.path); is_backward(id) && forward(operand) && product >= 0)
        if (const std::string role = role_of(product, 1 - k); !role.empty()) return role;
    for (NodeId before = 0; weighs && !is_backward(before); ++before)
      if (graph_[before].op == Op::einsum && graph_[before].path == n.path && softmax_axis(before) >= 0) return "value";
    return "matmul";
  }

  /// What tells a kernel from others of its module.
  std::string work_of(const Kernel& k) const {
    const auto has = [&](Op op) { return ranges::any_of(k.nodes, [&](NodeId id) { return graph_[id].op == op; }); };
    if (has(Op::reduce_max)) return "softmax";
    for (const NodeId id : k.nodes)
      if (graph_[id].op == Op::einsum) return work_of_product(id);
    return std::string(op_name(graph_[k.nodes.back()].op));
  }

  /// What tells a kernel from others of its module that do the same: the output that it writes, where what it reads
  /// comes from, its other operations, and those whose results it reads.
  std::vector<std::string> details_of(const Kernel& k, const std::string& path) const {
    std::vector<std::string> details;
    const std::string work = work_of(k);
    for (const NodeId id : k.nodes)
      if (claim(id).kind == Claim::Kind::output) details.push_back(graph_.outputs[claim(id).output].name);
    for (const NodeId id : k.nodes)
      for (const NodeId operand : graph_[id].operands)
        if (const std::string from = origin_of(operand, path); !from.empty()) details.push_back(from);
    for (const NodeId id : k.nodes)
      if (op_name(graph_[id].op) != work && graph_[id].op != Op::einsum) details.emplace_back(op_name(graph_[id].op));
    for (const NodeId id : k.nodes)
      for (const NodeId operand : graph_[id].operands)
        if (!ranges::contains(k.nodes, operand)) details.push_back(fmt::format("of_{}", op_name(graph_[operand].op)));
    return details;
  }

  /// A name that people recognise: the module's path, and forward, backward, or which parameter's gradient. A module's
  /// second kernel and those behind it are named after what they do as well, and then after what tells them apart; they
  /// are numbered where nothing does.
  void name_kernels() {
    std::map<std::string, int> used;
    for (Kernel& k : out_.kernels) {
      std::string path, gradient;
      bool backward = false;
      for (NodeId id : k.nodes) {
        if (path.empty()) path = graph_[id].path;
        backward |= is_backward(id);
        if (claim(id).kind == Claim::Kind::output && gradient.empty()) {
          const Output& o = graph_.outputs[claim(id).output];
          if (o.kind == Output::Kind::gradient && o.parameter != graph::none) gradient = o.name;
        }
      }
      const std::string direction = backward ? ".backward" : ".forward";
      const bool program =
          gradient.empty() && path.empty() && loss_ == graph::none && out_.kind != ProgramKind::forward;
      const std::string module = program ? out_.name : path, end = program ? "" : direction;
      std::vector<std::string> names;
      if (!gradient.empty())
        names = {gradient + ".gradient"};
      else if (!module.empty())
        names = {module + end, module + "." + work_of(k) + end};
      else
        names = {work_of(k) + end};
      if (gradient.empty())
        for (const std::string& detail : details_of(k, path))
          names.push_back((module.empty() ? "" : module + ".") + work_of(k) + "." + detail + end);
      const auto free =
          ranges::find_if(names, [&](const std::string& name) { return !used.contains(identifier(name)); });
      const std::string clean =
          identifier(free == names.end() ? names[std::min<std::size_t>(1, names.size() - 1)] : *free);
      const int n = ++used[clean];
      k.name = n == 1 ? clean : fmt::format("{}_{}", clean, n);
    }
  }

  Graph graph_;
  Analysis analysis_;
  Grouping grouping_;
  KernelProgram out_;
  std::map<NodeId, TensorId> tensor_;
  std::map<std::string, int> named_;
  std::set<NodeId> stored_;
  NodeId loss_ = graph::none;
};

}  // namespace

KernelProgram lower(const Graph& graph, ProgramKind kind, std::string_view name) {
  return Lowering(graph, kind, std::string(name.empty() ? name_of(kind) : name)).run();
}

}  // namespace tessera::codegen
