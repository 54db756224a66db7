#include "codegen/passes/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <range/v3/algorithm/adjacent_find.hpp>
#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/find.hpp>
#include <range/v3/algorithm/sort.hpp>
#include <set>
#include <string_view>

#include "codegen/error.hpp"
#include "codegen/extent.hpp"
#include "codegen/passes/op.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;
using graph::Type;

namespace {

bool contains(const auto& values, const auto& value) { return ranges::find(values, value) != ranges::end(values); }

bool distinct(std::vector<int> values) {
  ranges::sort(values);
  return ranges::adjacent_find(values) == values.end();
}

class GraphVerifier {
 public:
  explicit GraphVerifier(const Graph& graph) : graph_(graph) {}

  void run() {
    regions();
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      id_ = static_cast<NodeId>(i);
      operands();
      types();
      shape();
      attributes();
      size();
    }
    carries();
    names();
    outputs();
  }

 private:
  const Node& node() const { return graph_[id_]; }
  const Node& operand(std::size_t k) const { return graph_[node().operands[k]]; }
  const std::vector<Dim>& operand_shape(std::size_t k) const { return operand(k).shape; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    const Node& n = node();
    const std::string where = n.path.empty() ? "" : fmt::format(" of {}", n.path);
    throw Error(
        fmt::format("node %{} ({}{}) {}", id_, op_name(n.op), where, fmt::format(format, std::forward<Args>(args)...)));
  }

  bool exists(NodeId id) const { return id >= 0 && at(id) < graph_.nodes.size(); }

  void regions() const {
    if (graph_.regions.empty()) throw Error("the graph has no region 0, which is the model itself");
    for (std::size_t r = 0; r < graph_.regions.size(); ++r) {
      const Region& region = graph_.regions[r];
      if (region.parent != 0)
        throw Error(fmt::format("region {} stands in region {}: regions do not nest", r, region.parent));
      if (region.count < 1) throw Error(fmt::format("region {} (\"{}\") runs {} times", r, region.path, region.count));
      if (region.mirror == graph::none) continue;
      if (region.mirror < 1 || static_cast<std::size_t>(region.mirror) >= r)
        throw Error(fmt::format("region {} mirrors region {}, which is no earlier region", r, region.mirror));
      const Region& mirrored = graph_.regions[region.mirror];
      if (mirrored.count != region.count)
        throw Error(fmt::format("region {} runs {} times, but region {}, which it mirrors, {} times", r, region.count,
                                region.mirror, mirrored.count));
    }
    std::set<int> closed;
    int open = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int region = graph_.nodes[i].region;
      if (region < 0 || static_cast<std::size_t>(region) >= graph_.regions.size())
        throw Error(fmt::format("node %{} is in region {}, which does not exist", i, region));
      if (region == open) continue;
      if (open != 0) closed.insert(open);
      if (closed.contains(region))
        throw Error(fmt::format("node %{} is in region {}, whose nodes are not one contiguous run", i, region));
      open = region;
    }
  }

  /// Operands exist, are as many as the op takes, stand earlier and are in scope.
  void operands() const {
    const Node& n = node();
    for (NodeId o : n.operands) {
      if (!exists(o)) fail("reads %{}, which does not exist", o);
      if (o >= id_) fail("reads %{}, which does not stand before it", o);
      const int from = graph_[o].region;
      const int mirror = graph_.regions[n.region].mirror;
      const bool visible = n.op == Op::carry ? from == 0
                           : n.op == Op::carry_out
                               ? from != 0 && n.region == 0
                               : from == n.region || from == 0 || (mirror != graph::none && from == mirror);
      if (!visible) fail("reads %{} of region {} from region {}, where it is out of scope", o, from, n.region);
    }
    const auto count = static_cast<int>(n.operands.size());
    if (count < row_of(n.op).least || count > row_of(n.op).most) fail("has {} operands", count);
  }

  void types() const {
    const Node& n = node();
    const OperandTypes types = row_of(n.op).types;
    const bool view = types == OperandTypes::as_result;
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const bool integer =
          (k == 0 && types == OperandTypes::first_integers) || (k == 1 && types == OperandTypes::second_integers);
      const Type expected = view ? n.type : integer ? Type::integer : Type::real;
      if (operand(k).type != expected)
        fail("takes {} as operand {}, but %{} has {}", expected == Type::real ? "reals" : "integers", k, n.operands[k],
             expected == Type::real ? "integers" : "reals");
    }
    if (n.type == Type::integer && !view && n.op != Op::input && n.op != Op::integers)
      fail("cannot have integers as its result");
  }

  /// Of one image no value has so many numbers, and no contraction so many products, that sizes of a plan, which are
  /// small multiples of them, would not fit into 64 bits.
  void size() {
    constexpr std::int64_t most_numbers = std::int64_t{1} << 40, most_products = std::int64_t{1} << 50,
                           most_of_all = std::int64_t{1} << 56;
    const Node& n = node();
    const auto numbers = [&](const std::vector<Dim>& dims, std::int64_t most, std::string_view what) {
      std::int64_t all = 1;
      for (const Dim& d : dims)
        if (d.normal.fits_64_bits() && d.value(1) < 1)
          fail("has the dim {}, which is not positive", to_string(d));
        else if (!d.normal.fits_64_bits() || __builtin_mul_overflow(all, d.value(1), &all) || all > most)
          fail("has more than 2^{} {} an image, {}", std::countr_zero(static_cast<std::uint64_t>(most)), what,
               to_string(dims));
      return all;
    };
    std::int64_t work = numbers(n.shape, most_numbers, "numbers");
    if (n.op == Op::einsum) {
      std::map<int, Dim> dims;
      for (std::size_t k = 0; k < n.operands.size(); ++k)
        for (std::size_t i = 0; i < n.letters[k].size(); ++i) dims.emplace(n.letters[k][i], operand_shape(k)[i]);
      std::vector<Dim> all;
      for (const auto& [letter, dim] : dims) all.push_back(dim);
      work = numbers(all, most_products, "products");
    }
    if (__builtin_mul_overflow(work, std::int64_t{graph_.regions[n.region].count}, &work) ||
        __builtin_add_overflow(work_, work, &work_) || work_ > most_of_all)
      fail("is where all numbers and products of an image become more than 2^56");
  }

  void attributes() const {
    if (const std::string field = unlisted_field(node()); !field.empty())
      fail("sets {}, which its row in codegen/passes/ops.hpp does not list", field);
  }

  void expect(const std::vector<Dim>& expected) const {
    if (node().shape != expected)
      fail("has shape {}, but its operands make it {}", to_string(node().shape), to_string(expected));
  }

  void axes_in(const std::vector<Dim>& shape) const {
    if (!distinct(node().axes)) fail("names an axis twice");
    for (int axis : node().axes)
      if (axis < 0 || static_cast<std::size_t>(axis) >= shape.size())
        fail("names axis {} of {}", axis, to_string(shape));
  }
  void one_axis_in(const std::vector<Dim>& shape) const {
    if (node().axes.size() != 1) fail("needs one axis and has {}", node().axes.size());
    axes_in(shape);
  }

  void shape() const {
    const Node& n = node();
    switch (n.op) {
      case Op::input:
      case Op::parameter:
        break;
      case Op::table:
        table();
        break;
      case Op::arange:
        if (n.shape.size() != 1 || !n.shape[0].known())
          fail("numbers the places of {}, not of one dim whose size is known", to_string(n.shape));
        break;
      case Op::constant:
      case Op::extent:
        expect({});
        break;
      case Op::broadcast:
        broadcast();
        break;
      case Op::integers:
      case Op::stop_gradient:
        expect(operand_shape(0));
        break;
      case Op::one_hot:
        one_hot();
        break;
      case Op::rearrange:
        rearrange();
        break;
      case Op::slice:
        slice();
        break;
      case Op::concat:
        concat();
        break;
      case Op::unfold:
        windows(n.shape, operand_shape(0));
        break;
      case Op::fold:
        windows(operand_shape(0), n.shape);
        break;
      case Op::cache:
        cache();
        break;
      case Op::einsum:
        einsum();
        break;
      case Op::reduce_sum:
      case Op::reduce_max:
        reduce();
        break;
      case Op::softmax:
      case Op::log_softmax:
        one_axis_in(n.shape);
        expect(operand_shape(0));
        break;
      case Op::layer_norm:
        layer_norm();
        break;
      case Op::keep:
        if (operand_shape(0) != std::vector<Dim>{Dim::constant(4)})
          fail("takes the random state, integers [4], not {}", to_string(operand_shape(0)));
        rate();
        break;
      case Op::dropout:
        axes_in(n.shape);
        if (!std::is_sorted(n.axes.begin(), n.axes.end())) fail("names its axes out of order");
        expect(operand_shape(0));
        rate();
        break;
      case Op::gradient:
        if (!operand_shape(0).empty()) fail("is the gradient of one number, not of {}", to_string(operand_shape(0)));
        expect(operand_shape(1));
        break;
      case Op::gather:
        gather();
        break;
      case Op::cross_entropy:
        if (operand_shape(0).size() < 2 ||
            operand_shape(1) != std::vector(operand_shape(0).begin(), operand_shape(0).end() - 1))
          fail("takes logits [B, ..., J] and labels [B, ...], not {} and {}", to_string(operand_shape(0)),
               to_string(operand_shape(1)));
        expect({});
        break;
        TESSERA_REGION_OPS(TESSERA_OP_CASE)
        TESSERA_ELEMENTWISE_OPS(TESSERA_OP_CASE)
        for (std::size_t k = 0; k < n.operands.size(); ++k)
          if (operand_shape(k) != n.shape)
            fail("has shape {}, but operand %{} has {}", to_string(n.shape), n.operands[k],
                 to_string(operand_shape(k)));
    }
  }

  void table() const {
    std::int64_t count = 1;
    for (const Dim& dim : node().shape) {
      if (!dim.known()) fail("has dim {}, whose size is not known", to_string(dim));
      count *= dim.value();
    }
    if (count != static_cast<std::int64_t>(node().data.size()))
      fail("has shape {} but {} numbers", to_string(node().shape), node().data.size());
  }

  void broadcast() const {
    const Node& n = node();
    axes_in(n.shape);
    if (n.axes.size() != operand_shape(0).size())
      fail("places {} axes of {}", n.axes.size(), to_string(operand_shape(0)));
    for (std::size_t i = 0; i < n.axes.size(); ++i) {
      if (i && n.axes[i] < n.axes[i - 1]) fail("does not keep the order of its operand's axes");
      if (n.shape[n.axes[i]] != operand_shape(0)[i])
        fail("places dim {} of {} at axis {} of {}", i, to_string(operand_shape(0)), n.axes[i], to_string(n.shape));
    }
  }

  void rate() const {
    if (!(node().value >= 0 && node().value < 1)) fail("has the rate {}, which is not in [0, 1)", node().value);
    if (node().offset < 0 || node().offset > 0xffff) fail("is dropout number {}, which is too many", node().offset);
  }

  void gather() const {
    if (operand_shape(0).empty()) fail("takes rows of a table, not of one number");
    std::vector<Dim> expected = operand_shape(1);
    expected.insert(expected.end(), operand_shape(0).begin() + 1, operand_shape(0).end());
    expect(expected);
  }

  void one_hot() const {
    const Node& n = node();
    if (n.shape.empty()) fail("needs a last dim for the classes");
    expect([&] {
      std::vector<Dim> expected = operand_shape(0);
      expected.push_back(n.shape.back());
      return expected;
    }());
  }

  void rearrange() const {
    const Node& n = node();
    const graph::Rearrangement& r = n.rearrangement;
    auto side = [&](const std::vector<std::vector<int>>& dims, const std::vector<Dim>& shape, const char* name) {
      if (dims.size() != shape.size()) fail("has {} dims on its {} for {}", dims.size(), name, to_string(shape));
      std::vector<int> all;
      for (std::size_t i = 0; i < dims.size(); ++i) {
        Dim product = Dim::constant(1);
        for (int atom : dims[i]) {
          if (atom < 0 || static_cast<std::size_t>(atom) >= r.atoms.size())
            fail("names atom {} of {}", atom, r.atoms.size());
          product = product * r.atoms[atom];
          all.push_back(atom);
        }
        if (product != shape[i])
          fail("makes dim {} of its {} {}, but it is {}", i, name, to_string(product), to_string(shape[i]));
      }
      if (all.size() != r.atoms.size() || !distinct(all)) fail("does not have each atom once on its {}", name);
    };
    side(r.from, operand_shape(0), "left side");
    side(r.to, n.shape, "right side");
  }

  void slice() const {
    const Node& n = node();
    one_axis_in(n.shape);
    const auto axis = static_cast<std::size_t>(n.axes[0]);
    if (n.shape.size() != operand_shape(0).size())
      fail("has shape {} of {}", to_string(n.shape), to_string(operand_shape(0)));
    for (std::size_t i = 0; i < n.shape.size(); ++i)
      if (i != axis && n.shape[i] != operand_shape(0)[i]) fail("changes axis {}, along which it does not cut", i);
    const Dim rest = operand_shape(0)[axis] - n.shape[axis];
    if (n.offset < 0 || !rest.known() || n.offset > rest.value())
      fail("takes {} from {} on, which does not lie in {}", to_string(n.shape[axis]), n.offset,
           to_string(operand_shape(0)[axis]));
  }

  void concat() const {
    const Node& n = node();
    one_axis_in(n.shape);
    const auto axis = static_cast<std::size_t>(n.axes[0]);
    Dim total = Dim::constant(0);
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      std::vector<Dim> part = operand_shape(k);
      if (part.size() != n.shape.size()) fail("puts {} into {}", to_string(part), to_string(n.shape));
      total = total + part[axis];
      part[axis] = n.shape[axis];
      if (part != n.shape) fail("puts {} into {} along axis {}", to_string(operand_shape(k)), to_string(n.shape), axis);
    }
    if (!same_size(total, n.shape[axis]))
      fail("has parts of {} in all along axis {}, where it is {}", to_string(total), axis, to_string(n.shape[axis]));
  }

  /// Of an unfold and of its transpose: `unfolded` has kernel and windows where `whole` has one dim, all of known
  /// sizes.
  void windows(const std::vector<Dim>& unfolded, const std::vector<Dim>& whole) const {
    const Node& n = node();
    one_axis_in(whole);
    const auto axis = static_cast<std::size_t>(n.axes[0]);
    if (n.stride < 1 || n.dilation == 0) fail("has the stride {} and the dilation {}", n.stride, n.dilation);
    std::vector<Dim> others = unfolded;
    if (unfolded.size() == whole.size() + 1) {
      others.erase(others.begin() + n.axes[0]);
      others[axis] = whole[axis];
    }
    if (others != whole || !whole[axis].known() || !unfolded[axis].known() || !unfolded[axis + 1].known())
      fail("has shape {} of {}", to_string(n.shape), to_string(operand_shape(0)));
  }

  void cache() const {
    const Node& n = node();
    one_axis_in(n.shape);
    std::vector<Dim> expected = operand_shape(0);
    if (expected.size() != n.shape.size() || expected[n.axes[0]] != Dim::constant(1) ||
        operand_shape(1) != std::vector<Dim>{Dim::constant(1)})
      fail("takes one row and its number, not {} and {}", to_string(operand_shape(0)), to_string(operand_shape(1)));
    expected[n.axes[0]] = n.shape[n.axes[0]];
    expect(expected);
  }

  void einsum() const {
    const Node& n = node();
    if (n.letters.size() != n.operands.size() + 1) fail("has {} groups of letters", n.letters.size());
    std::map<int, Dim> dims;
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      if (n.letters[k].size() != operand_shape(k).size())
        fail("gives the letters {} to {}", letters_of(n.letters[k]), to_string(operand_shape(k)));
      if (!distinct(n.letters[k])) fail("has a letter twice in {}", letters_of(n.letters[k]));
      for (std::size_t i = 0; i < n.letters[k].size(); ++i) {
        const auto [found, fresh] = dims.emplace(n.letters[k][i], operand_shape(k)[i]);
        if (!fresh && found->second != operand_shape(k)[i])
          fail("binds the letter {} to {} and to {}", letters_of({n.letters[k][i]}), to_string(found->second),
               to_string(operand_shape(k)[i]));
      }
    }
    if (!distinct(n.letters.back())) fail("has a letter twice in {}", letters_of(n.letters.back()));
    std::vector<Dim> expected;
    for (int letter : n.letters.back()) {
      if (!dims.contains(letter)) fail("has the letter {} in its result only", letters_of({letter}));
      expected.push_back(dims.at(letter));
    }
    expect(expected);
  }

  void reduce() const {
    const Node& n = node();
    axes_in(operand_shape(0));
    std::vector<Dim> expected;
    for (std::size_t i = 0; i < operand_shape(0).size(); ++i)
      if (!contains(n.axes, static_cast<int>(i))) expected.push_back(operand_shape(0)[i]);
    expect(expected);
  }

  void layer_norm() const {
    const Node& n = node();
    axes_in(n.shape);
    if (!std::is_sorted(n.axes.begin(), n.axes.end())) fail("names its axes out of order");
    expect(operand_shape(0));
    std::vector<Dim> normed;
    for (int axis : n.axes) normed.push_back(n.shape[axis]);
    for (std::size_t k : {1, 2})
      if (operand_shape(k) != normed)
        fail("normalises over {}, but %{} has {}", to_string(normed), n.operands[k], to_string(operand_shape(k)));
  }

  /// Carries and yields agree, and carry nodes are exactly those that their region lists.
  void carries() const {
    std::set<NodeId> listed;
    for (std::size_t r = 0; r < graph_.regions.size(); ++r) {
      const Region& region = graph_.regions[r];
      if (region.carries.size() != region.yields.size())
        throw Error(
            fmt::format("region {} has {} carries and {} yields", r, region.carries.size(), region.yields.size()));
      for (std::size_t i = 0; i < region.carries.size(); ++i) {
        const NodeId carry = region.carries[i], yield = region.yields[i];
        for (NodeId id : {carry, yield})
          if (!exists(id) || graph_[id].region != static_cast<int>(r))
            throw Error(fmt::format("region {} carries %{}, which is not a node inside it", r, id));
        if (graph_[carry].op != Op::carry || !listed.insert(carry).second)
          throw Error(fmt::format("region {} lists %{} as a carry, which is none or another's", r, carry));
        if (graph_[carry].shape != graph_[yield].shape || graph_[carry].type != graph_[yield].type)
          throw Error(fmt::format("region {} (\"{}\") carries {}, but a layer yields {}", r, region.path,
                                  to_string(graph_[carry].shape), to_string(graph_[yield].shape)));
      }
    }
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& n = graph_.nodes[i];
      if (n.op == Op::carry && !listed.contains(static_cast<NodeId>(i)))
        throw Error(fmt::format("node %{} (carry) is not listed by its region", i));
      if (n.op == Op::carry_out && graph_[n.operands[0]].op != Op::carry)
        throw Error(fmt::format("node %{} (carry_out) reads %{}, which is not a carry", i, n.operands[0]));
      if (n.op != Op::carry_out) continue;
      const int region = graph_[n.operands[0]].region;
      for (std::size_t k = i; k < graph_.nodes.size(); ++k)
        if (graph_.nodes[k].region == region)
          throw Error(fmt::format("node %{} (carry_out) stands before the end of region {}", i, region));
    }
  }

  void names() const {
    std::set<std::string> seen;
    for (const Node& n : graph_.nodes) {
      if (n.op != Op::parameter && n.op != Op::input) continue;
      if (n.name.empty()) throw Error(fmt::format("an {} has no name", op_name(n.op)));
      if (!seen.insert(n.name).second) throw Error(fmt::format("two parameters or inputs are called {}", n.name));
    }
  }

  void outputs() const {
    for (const Output& o : graph_.outputs) {
      if (!exists(o.node)) throw Error(fmt::format("the output {} is %{}, which does not exist", o.name, o.node));
      if (o.kind == Output::Kind::loss && !graph_[o.node].shape.empty())
        throw Error(fmt::format("the loss must be one number, not {}", to_string(graph_[o.node].shape)));
      if (o.kind != Output::Kind::gradient) continue;
      if (!exists(o.parameter)) throw Error(fmt::format("the gradient {} does not say whose it is", o.name));
      if (graph_[o.node].shape != graph_[o.parameter].shape)
        throw Error(fmt::format("the gradient of {} has shape {}, but it has {}", o.name,
                                to_string(graph_[o.node].shape), to_string(graph_[o.parameter].shape)));
    }
  }

  const Graph& graph_;
  NodeId id_ = 0;
  std::int64_t work_ = 0;  ///< numbers and products of one image so far
};

}  // namespace

void verify(const Graph& graph) { GraphVerifier(graph).run(); }

}  // namespace tessera::codegen
