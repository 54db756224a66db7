#include "codegen/kernels/fuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <set>
#include <tuple>

#include "codegen/error.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::Op;

namespace {

std::string letter(std::size_t i) { return std::string(1, static_cast<char>('a' + i % 26)); }

class Fuser {
 public:
  Fuser(const Graph& graph, const Analysis& analysis) : graph_(graph), analysis_(analysis) {
    out_.group.assign(graph.nodes.size(), -1);
    users_.resize(graph.nodes.size());
  }

  Grouping run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for (NodeId o : graph_.nodes[i].operands) users_[o].push_back(static_cast<NodeId>(i));
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (analysis_.role[i] == Role::member) place(static_cast<NodeId>(i));
    while (!floating_.empty()) settle(*floating_.rbegin());
    merge();
    for (Group& g : out_.groups) std::sort(g.nodes.begin(), g.nodes.end());
    order();
    return std::move(out_);
  }

 private:
  Role role(NodeId id) const { return analysis_.role[id]; }
  int group_of(NodeId id) const { return out_.group[id]; }
  Group& group(int g) { return out_.groups[g]; }

  void place(NodeId id) {
    const Node& n = graph_[id];
    if (is_elementwise(n.op)) return place_elementwise(id);
    if (n.op == Op::einsum) {
      settle_operands(id);
      start_einsum(id);
    } else if (n.op == Op::rearrange) {
      settle_operands(id);
      start_rearrange(id);
    } else if (is_reduction(n.op)) {
      place_reduction(id);
    } else if (n.op == Op::cache) {
      settle_operands(id);
      start_cache(id);
    } else {
      throw Error(fmt::format("no kernel computes node %{}: composites must be decomposed first", id));
    }
  }

  // An elementwise node floats while it is not clear which kernel wants it: one that reads only what is in memory, or
  // one that a row kernel is going to pass over. The first elementwise or row kernel that reads it takes it in; anybody
  // else makes it a kernel of its own.

  /// Gives a floating node a kernel of its own.
  void settle(NodeId id) {
    floating_.erase(id);
    int g = start_plain(id, graph_[id].shape, Anchor::elementwise);
    const std::vector<Affine> full = group(g).full;  // its place in memory changes with every new group
    take(g, id, full);
  }
  /// Settles everything floating that a node reads, through views and concats.
  void settle_operands(NodeId id) {
    for (NodeId o : graph_[id].operands) {
      if (graph_[o].region != graph_[id].region) continue;
      if (floating_.contains(o))
        settle(o);
      else if (role(o) == Role::inlined || role(o) == Role::storage)
        settle_operands(o);
    }
  }
  /// Puts a node into a group together with the floating nodes that it reads at the same index.
  void take(int g, NodeId id, const std::vector<Affine>& index) {
    join(g, id, index);
    Wanted wanted;
    for (NodeId o : graph_[id].operands) want(wanted, o, graph_[id], true);
    pull(g, std::move(wanted), index);
  }
  /// Floating nodes that a group reads, the latest first, and whether each is read at the group's index alone.
  using Wanted = std::map<NodeId, bool, std::greater<>>;
  void want(Wanted& wanted, NodeId o, const Node& reader, bool in_place) const {
    const Node& n = graph_[o];
    if (n.region != reader.region) return;
    in_place = in_place && n.shape == reader.shape;
    if (floating_.contains(o)) {
      auto [at, fresh] = wanted.try_emplace(o, in_place);
      at->second = at->second && in_place;
    } else if (role(o) == Role::inlined || role(o) == Role::storage) {
      for (NodeId p : n.operands) want(wanted, p, reader, in_place && role(o) == Role::inlined && is_elementwise(n.op));
    }
  }
  /// Takes the wanted nodes in, with those that they read; settles those that cannot be taken. The latest come first,
  /// so that everything which may need a node has its place when the node's turn comes.
  void pull(int g, Wanted wanted, const std::vector<Affine>& index) {
    while (!wanted.empty()) {
      const auto [o, in_place] = *wanted.begin();
      wanted.erase(wanted.begin());
      if (!floating_.contains(o)) continue;
      if (!in_place || depends_on_group(o, g) || group_depends_on(g, o)) {
        settle(o);
        continue;
      }
      floating_.erase(o);
      join(g, o, index);
      for (NodeId p : graph_[o].operands) want(wanted, p, graph_[o], true);
    }
  }

  bool sums_batch(const Node& n) const {
    const std::vector<Dim>& shape = graph_[n.operands[0]].shape;
    return std::any_of(n.axes.begin(), n.axes.end(), [&](int a) { return !shape[a].known(); });
  }
  /// Whether a reduction over a row reads the node, perhaps through other elementwise nodes.
  bool feeds_row(NodeId id) const {
    for (NodeId u : users_[id]) {
      const Node& n = graph_[u];
      if (n.region != graph_[id].region) continue;
      if (is_reduction(n.op) && !sums_batch(n)) return true;
      if (is_elementwise(n.op) && feeds_row(u)) return true;
    }
    return false;
  }
  /// Whether all that is made of the node is made of factors of products: those are in memory anyway.
  bool feeds_factors_alone(NodeId id) const {
    const auto in_place = [&](NodeId u) { return graph_[u].region == graph_[id].region; };
    return ranges::all_of(users_[id], [&](NodeId u) {
      const auto is_product = [&](NodeId v) { return in_place(v) && graph_[v].op == Op::einsum; };
      return in_place(u) && is_elementwise(graph_[u].op) &&
             (ranges::any_of(users_[u], is_product) || feeds_factors_alone(u));
    });
  }
  /// Whether a row kernel alone is going to read the node: it feeds a reduction, and none of its users comes after a
  /// contraction that itself needs the node.
  bool belongs_to_row(NodeId id) const {
    if (analysis_.claim[id].kind != Claim::Kind::none || analysis_.kept[id] || !feeds_row(id) ||
        feeds_factors_alone(id))
      return false;
    std::set<NodeId> after;  // what needs the node through a contraction
    std::set<NodeId> needs{id};
    for (std::size_t i = static_cast<std::size_t>(id) + 1; i < graph_.nodes.size(); ++i) {
      const Node& n = graph_.nodes[i];
      auto me = static_cast<NodeId>(i);
      for (NodeId o : n.operands) {
        if (needs.contains(o)) needs.insert(me);
        if (after.contains(o) || (needs.contains(o) && n.op == Op::einsum)) after.insert(me);
      }
    }
    for (NodeId u : users_[id]) {
      const Node& n = graph_[u];
      if (n.region != graph_[id].region || after.contains(u)) return false;
      if (!is_elementwise(n.op) && !(is_reduction(n.op) && !sums_batch(n))) return false;
    }
    return true;
  }

  void join(int g, NodeId id, std::vector<Affine> index) {
    group(g).nodes.push_back(id);
    group(g).index[id] = std::move(index);
    out_.group[id] = g;
  }

  int start(NodeId id, Anchor anchor) {
    Group g;
    g.anchor = anchor;
    g.region = graph_[id].region;
    out_.groups.push_back(std::move(g));
    return static_cast<int>(out_.groups.size()) - 1;
  }

  void start_einsum(NodeId id) {
    const Node& n = graph_[id];
    int g = start(id, Anchor::contraction);
    std::map<int, int> axis;
    std::vector<Affine> index;
    auto add_axis = [&](int l, const Dim& dim, bool inner) {
      axis[l] = static_cast<int>(group(g).axes.size());
      group(g).axes.push_back({letter(axis.size() - 1), dim, inner});
      if (inner && !dim.known()) group(g).across_batch = true;
    };
    for (std::size_t i = 0; i < n.shape.size(); ++i) {
      add_axis(n.letters.back()[i], n.shape[i], false);
      index.push_back(axis_index(axis[n.letters.back()[i]]));
    }
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      for (std::size_t i = 0; i < n.letters[k].size(); ++i)
        if (!axis.contains(n.letters[k][i])) add_axis(n.letters[k][i], graph_[n.operands[k]].shape[i], true);
    join(g, id, std::move(index));
  }

  void start_rearrange(NodeId id) {
    const graph::Rearrangement r = canonical(graph_[id].rearrangement);
    int g = start(id, Anchor::elementwise);
    std::vector<int> axis(r.atoms.size(), -1);
    std::vector<Affine> index;
    for (const std::vector<int>& dim : r.to) {
      Affine sum;
      for (int atom : dim) {
        auto a = static_cast<std::size_t>(atom);
        axis[a] = static_cast<int>(group(g).axes.size());
        group(g).axes.push_back({letter(group(g).axes.size()), r.atoms[a], false});
        sum = sum * (sum.parts.empty() ? 1 : extent(r.atoms[a]).fixed) + axis_index(axis[a]);
      }
      index.push_back(sum);
    }
    join(g, id, std::move(index));
  }

  /// Its kernel stands at one point of an axis: nothing else is computed there.
  void start_cache(NodeId id) {
    const int g = start(id, Anchor::elementwise);
    std::vector<Affine> index;
    for (const Dim& dim : graph_[id].shape) {
      index.push_back(axis_index(static_cast<int>(index.size())));
      group(g).axes.push_back({letter(group(g).axes.size()), dim, false});
    }
    join(g, id, std::move(index));
  }

  int start_plain(NodeId id, const std::vector<Dim>& shape, Anchor anchor) {
    int g = start(id, anchor);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      group(g).axes.push_back({letter(i), shape[i], false});
      group(g).full.push_back(axis_index(static_cast<int>(i)));
    }
    group(g).full_shape = shape;
    return g;
  }

  static std::vector<Affine> without(const std::vector<Affine>& index, const std::vector<int>& axes) {
    std::vector<Affine> rest;
    for (std::size_t i = 0; i < index.size(); ++i)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end()) rest.push_back(index[i]);
    return rest;
  }

  void place_reduction(NodeId id) {
    const Node& n = graph_[id];
    NodeId x = n.operands[0];
    const std::vector<Dim>& shape = graph_[x].shape;
    const bool batch = sums_batch(n);
    if (!batch)
      for (int g = static_cast<int>(out_.groups.size()); g-- > 0;)
        if (shares_pass_with(id, g)) {
          Group& to = group(g);
          for (int a : n.axes) to.axes[to.full[a].parts[0].axis].inner = true;
          to.anchor = Anchor::row;
          const std::vector<Affine> full = to.full;
          join(g, id, without(full, n.axes));
          pull_row(g, x, full);
          return;
        }
    if (batch) settle_operands(id);
    int g = start_plain(id, shape, batch ? Anchor::contraction : Anchor::row);
    for (int a : n.axes) group(g).axes[a].inner = true;
    group(g).across_batch = batch;
    const std::vector<Affine> full = group(g).full;
    join(g, id, without(full, n.axes));
    if (!batch) pull_row(g, x, full);
  }
  /// Takes in what a reduction over a row reads, where it floats.
  void pull_row(int g, NodeId x, const std::vector<Affine>& full) {
    Wanted wanted;
    want(wanted, x, graph_[x], true);
    pull(g, std::move(wanted), full);
  }

  /// Whether a reduction over a row can be one more pass of group g.
  bool shares_pass_with(NodeId id, int g) {
    const Node& n = graph_[id];
    const Group& to = group(g);
    NodeId x = n.operands[0];
    if (to.region != n.region || to.anchor == Anchor::contraction || to.full_shape != graph_[x].shape) return false;
    const bool reads = group_of(x) == g;
    if (reads && to.index.at(x) != to.full) return false;
    if (!reads && to.anchor != Anchor::row) return false;
    if (!consistent(id, g, to.full)) return false;
    const bool fresh = std::none_of(to.axes.begin(), to.axes.end(), [](const Axis& a) { return a.inner; });
    for (std::size_t i = 0; i < to.full.size(); ++i) {
      if (to.full[i].parts.size() != 1) return false;
      const bool summed = std::find(n.axes.begin(), n.axes.end(), static_cast<int>(i)) != n.axes.end();
      if (!fresh && to.axes[to.full[i].parts[0].axis].inner != summed) return false;
    }
    return !depends_on_group(id, g);
  }

  void place_elementwise(NodeId id) {
    for (int g : candidates(id)) {
      std::vector<Affine> index;
      if (!elementwise_index(id, g, index) || depends_on_group(id, g)) continue;
      if (group(g).anchor == Anchor::contraction && belongs_to_row(id)) continue;
      take(g, id, index);
      return;
    }
    floating_.insert(id);
  }

  /// Groups that compute something the node reads, in its region; the latest first.
  std::vector<int> candidates(NodeId id) const {
    std::set<int, std::greater<>> found;
    collect(id, found);
    return {found.begin(), found.end()};
  }
  void collect(NodeId id, std::set<int, std::greater<>>& found) const {
    for (NodeId o : graph_[id].operands) {
      if (graph_[o].region != graph_[id].region) continue;
      if (role(o) == Role::inlined)
        collect(o, found);
      else if (group_of(o) >= 0)
        found.insert(group_of(o));
    }
  }

  /// Whether an elementwise node can be computed in group g, and at which index.
  bool elementwise_index(NodeId id, int g, std::vector<Affine>& index) {
    const Group& to = group(g);
    if (graph_[to.nodes.front()].op == Op::cache) return false;
    const std::vector<Dim>& shape = graph_[id].shape;
    std::vector<std::vector<Affine>> tries;
    for (NodeId o : graph_[id].operands)
      if (group_of(o) == g) tries.push_back(to.index.at(o));
    if (!to.full.empty() && shape == to.full_shape && to.anchor != Anchor::contraction) tries.push_back(to.full);
    if (shape.empty()) tries.push_back({});
    for (std::vector<Affine>& t : tries)
      if (consistent(id, g, t)) {
        if (to.anchor == Anchor::contraction && t != to.index.at(to.nodes.front())) continue;
        index = std::move(t);
        return true;
      }
    return false;
  }

  /// Whether everything that node `id` reads of group g, itself indexed by `index`, stands at its own index there.
  bool consistent(NodeId id, int g, const std::vector<Affine>& index) {
    for (NodeId o : graph_[id].operands)
      if (!reads_in_place(o, g, graph_[o].shape.empty() ? std::vector<Affine>{} : index)) return false;
    return true;
  }
  bool reads_in_place(NodeId o, int g, const std::vector<Affine>& index) {
    if (group_of(o) == g) return group(g).index.at(o) == index;
    if (role(o) == Role::storage) return !writes_into(o, g);
    if (role(o) != Role::inlined) return true;
    const Node& n = graph_[o];
    if (n.op == Op::broadcast) {
      std::vector<Affine> inner;
      for (int a : n.axes) inner.push_back(index[a]);
      return reads_in_place(n.operands[0], g, inner);
    }
    if (is_elementwise(n.op)) {
      for (NodeId p : n.operands)
        if (!reads_in_place(p, g, index)) return false;
      return true;
    }
    // Any other view moves elements: it must not read this group.
    std::set<int, std::greater<>> found;
    collect(o, found);
    return !found.contains(g);
  }
  bool writes_into(NodeId storage, int g) const {
    for (NodeId o : graph_[storage].operands)
      if (group_of(o) == g || (role(o) == Role::storage && writes_into(o, g))) return true;
    return false;
  }

  /// Whether node `id` reads, through anything outside group g, what group g computes: then it cannot join.
  bool depends_on_group(NodeId id, int g) const {
    std::vector<NodeId> read;
    reads(id, g, graph::none, read);
    return reaches(std::move(read), graph_[id].region, [&](NodeId n) { return group_of(n) == g; });
  }
  /// Whether something that group g reads needs node `o` itself: then g cannot compute it.
  bool group_depends_on(int g, NodeId o) const {
    std::vector<NodeId> read;
    for (NodeId member : out_.groups[g].nodes) reads(member, g, o, read);
    return reaches(std::move(read), graph_[o].region, [&](NodeId n) { return n == o; });
  }
  /// What node `id` reads outside group g, but for node `o`; what is inlined is read where it is used.
  void reads(NodeId id, int g, NodeId o, std::vector<NodeId>& read) const {
    for (NodeId p : graph_[id].operands) {
      if (p == o || group_of(p) == g) continue;
      if (role(p) == Role::inlined)
        reads(p, g, o, read);
      else
        read.push_back(p);
    }
  }
  /// Whether `todo`, or anything that must be computed before it, is found. A kernel is computed as a whole, and so is
  /// a repeated block other than `region`.
  template <class F>
  bool reaches(std::vector<NodeId> todo, int region, F found) const {
    std::vector<bool> seen(graph_.nodes.size());  // by node: most of the generator's questions end here
    std::vector<bool> computed(out_.groups.size());
    std::set<int> blocks;
    auto visit_operands = [&](NodeId n) {
      for (NodeId o : graph_[n].operands)
        if (!seen[o]) todo.push_back(o);
    };
    while (!todo.empty()) {
      const NodeId n = todo.back();
      todo.pop_back();
      if (seen[n]) continue;
      seen[n] = true;
      if (found(n)) return true;
      const int block = graph_[n].region;
      if (block != 0 && block != region && blocks.insert(block).second)
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
          if (graph_.nodes[i].region == block) todo.push_back(static_cast<NodeId>(i));
      if (const int g = group_of(n); g < 0) {
        visit_operands(n);
      } else if (!computed[g]) {
        computed[g] = true;
        for (NodeId member : out_.groups[g].nodes) visit_operands(member);
      }
    }
    return false;
  }

  /// An elementwise kernel that reads, place for place, what a product or a row kernel reads anyway is computed there:
  /// the GELU that a weight's gradient needs beside the gradient of GELU, both of one saved value.
  void merge() {
    for (int e = 0; e < static_cast<int>(out_.groups.size()); ++e) {
      if (group(e).anchor != Anchor::elementwise || group(e).full.empty()) continue;
      for (int g = 0; g < static_cast<int>(out_.groups.size()); ++g) {
        const std::vector<Affine> index = shared_index(e, g);
        if (index.empty()) continue;
        for (NodeId id : group(e).nodes) join(g, id, index);
        group(e).nodes.clear();
        break;
      }
    }
    std::vector<Group> left;
    for (Group& g : out_.groups) {
      if (g.nodes.empty()) continue;
      for (NodeId id : g.nodes) out_.group[id] = static_cast<int>(left.size());
      left.push_back(std::move(g));
    }
    out_.groups = std::move(left);
  }
  /// The index at which all of elementwise group e can be computed in group g; empty: it cannot, or nothing would be
  /// read less often.
  std::vector<Affine> shared_index(int e, int g) {
    const Group &from = group(e), &to = group(g);
    if (to.nodes.empty() || to.region != from.region || to.across_batch || to.anchor == Anchor::elementwise) return {};
    const NodeId first = to.nodes.front();
    const bool product = to.anchor == Anchor::contraction;
    if (from.full_shape != (product ? graph_[first].shape : to.full_shape)) return {};
    std::set<NodeId> read;
    const auto reads_whole = [&](NodeId o) {
      return graph_[o].shape == from.full_shape && role(o) == Role::member && group_of(o) != e && group_of(o) != g;
    };
    for (NodeId id : from.nodes) {
      if (from.index.at(id) != from.full) return {};
      for (NodeId o : graph_[id].operands)
        if (group_of(o) == g)
          return {};
        else if (reads_whole(o))
          read.insert(o);
    }
    const std::vector<Affine>& index = product ? to.index.at(first) : to.full;
    const bool reads_it_too = ranges::any_of(to.nodes, [&](NodeId id) {
      return is_elementwise(graph_[id].op) && to.index.at(id) == index &&
             ranges::any_of(graph_[id].operands, [&](NodeId o) { return read.contains(o); });
    });
    // Last what searches the graph.
    if (!reads_it_too ||
        ranges::any_of(from.nodes, [&](NodeId id) { return depends_on_group(id, g) || group_depends_on(g, id); }))
      return {};
    return index;
  }

  /// Kahn's algorithm in each region. Among what is ready, first what goes on with the running kind of work, so that
  /// long runs can be done image by image; then what does not depend on the batch, then image by image, sums over the
  /// batch last; and in the graph's order. Constants, as the zeros around a map, are stored when they are read first:
  /// before, they would take memory.
  void order() {
    out_.order.resize(graph_.regions.size());
    for (std::size_t r = 0; r < graph_.regions.size(); ++r) order_region(static_cast<int>(r));
  }
  void order_region(int r) {
    std::vector<Item> items;
    std::vector<std::vector<NodeId>> reads;
    std::vector<NodeId> key;
    for (std::size_t g = 0; g < out_.groups.size(); ++g) {
      if (out_.groups[g].region != r) continue;
      items.push_back({static_cast<int>(g), -1});
      reads.push_back(out_.groups[g].nodes);
      key.push_back(out_.groups[g].nodes.front());
    }
    for (std::size_t q = 1; q < graph_.regions.size(); ++q) {
      if (graph_.regions[q].parent != r || static_cast<int>(q) == r) continue;
      std::vector<NodeId> body;
      for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
        if (graph_.nodes[i].region == static_cast<int>(q)) body.push_back(static_cast<NodeId>(i));
      items.push_back({-1, static_cast<int>(q)});
      key.push_back(body.front());
      reads.push_back(std::move(body));
    }
    auto item_of = [&](NodeId n) -> int {  // which item computes what stands in node n; -1: nobody here
      for (std::size_t k = 0; k < items.size(); ++k) {
        if (items[k].kernel >= 0 && group_of(n) == items[k].kernel) return static_cast<int>(k);
        if (items[k].region >= 0 && graph_[n].region == items[k].region) return static_cast<int>(k);
      }
      return -1;
    };
    std::vector<std::set<int>> needs(items.size());
    std::vector<bool> constant(items.size(), true);  // an image's, which reads nothing
    for (std::size_t k = 0; k < items.size(); ++k) {
      std::set<NodeId> seen;
      std::vector<NodeId> todo = reads[k];
      while (!todo.empty()) {
        NodeId n = todo.back();
        todo.pop_back();
        if (!seen.insert(n).second) continue;
        int at = item_of(n);
        if (at >= 0 && at != static_cast<int>(k)) {
          needs[k].insert(at);
          continue;
        }
        for (NodeId o : graph_[n].operands) todo.push_back(o);
        if (graph_[n].operands.empty() && graph_[n].op != Op::constant) constant[k] = false;
      }
    }
    // Sums over the batch come before repeated blocks: gradients are final in the order in which backward meets them.
    constexpr int sums = 2, blocks = 3;
    auto kind = [&](const Item& item) {
      if (item.region >= 0) return blocks;
      const Group& g = group(item.kernel);
      if (g.across_batch) return sums;
      return std::any_of(g.axes.begin(), g.axes.end(), [](const Axis& a) { return !a.dim.known(); }) ? 1 : 0;
    };
    for (std::size_t k = 0; k < items.size(); ++k)
      if (!needs[k].empty() || kind(items[k]) != 1) constant[k] = false;
    int running = 0;
    auto rank = [&](std::size_t k) {
      const int its = kind(items[k]);
      return std::make_tuple(its == running && its != sums ? 0 : 1, its, key[k]);
    };
    std::vector<bool> done(items.size(), false);
    const auto place = [&](int k) {
      if (done[k]) return;
      done[k] = true;
      out_.order[r].push_back(items[k]);
    };
    for (auto computed = std::count(constant.begin(), constant.end(), false); computed > 0; --computed) {
      int next = -1;
      for (std::size_t k = 0; k < items.size(); ++k) {
        if (done[k] || constant[k] ||
            std::any_of(needs[k].begin(), needs[k].end(), [&](int d) { return !done[d] && !constant[d]; }))
          continue;
        if (next < 0 || rank(k) < rank(static_cast<std::size_t>(next))) next = static_cast<int>(k);
      }
      if (next < 0) throw Error("the kernels of the graph depend on each other in a circle");
      for (const int d : needs[next])
        if (constant[d]) place(d);
      place(next);
      running = kind(items[next]);
    }
    for (std::size_t k = 0; k < items.size(); ++k) place(static_cast<int>(k));  // what only the caller reads
  }

  const Graph& graph_;
  const Analysis& analysis_;
  Grouping out_;
  std::vector<std::vector<NodeId>> users_;
  std::set<NodeId> floating_;
};

}  // namespace

Grouping fuse(const Graph& graph, const Analysis& analysis) { return Fuser(graph, analysis).run(); }

}  // namespace tessera::codegen
