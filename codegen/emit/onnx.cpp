#include "codegen/emit/onnx.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numbers>
#include <numeric>
#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/algorithm/contains.hpp>
#include <range/v3/algorithm/find.hpp>
#include <set>
#include <utility>
#include <vector>

#include "codegen/emit/entry.hpp"
#include "codegen/error.hpp"
#include "codegen/extent.hpp"
#include "codegen/passes/op.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/rewrite.hpp"

namespace tessera::codegen {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

/// The statement in lines of at most 118 columns; those behind the first begin with a blank.
std::string in_lines(const std::vector<std::string>& words) {
  std::string out, line;
  for (const std::string& word : words) {
    if (!line.empty() && line.size() + 1 + word.size() > 118) {
      out += line + "\n";
      line = " ";
    }
    line += (line.empty() || line == " " ? "" : " ") + word;
  }
  return out + line + "\n";
}

std::string float_text(double value) { return fmt::format("{}", static_cast<float>(value)); }
std::string list(const std::vector<int>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

/// The axes that come last, in order: [2, 3] of four.
bool are_last(const std::vector<int>& axes, std::size_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int>(rank - axes.size() + i)) return false;
  return true;
}

class Translation {
 public:
  explicit Translation(const Graph& declared)
      : declared_(declared),
        graph_(passed(declared, program_passes(ProgramKind::forward))),
        name_(graph_.nodes.size()),
        thin_(graph_.nodes.size(), false) {}

  std::string run() {
    find_thin();
    std::string interface;
    for (const Node& n : declared_.nodes)
      if (n.op == Op::input && (n.name == input_of(declared_) || reads(n.name)))
        interface += value_line("input", n.name, n);
    std::string body, layers;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int region = graph_.nodes[i].region;
      id_ = static_cast<NodeId>(i);
      parts_ = 0;
      name_[i] = translate(graph_.nodes[i]);
      (region ? layers : body) += std::exchange(nodes_, "");
      if (region && (i + 1 == graph_.nodes.size() || graph_.nodes[i + 1].region != region))
        body += repeated(graph_.regions[region], std::exchange(layers, ""));
    }
    for (const Output& o : graph_.outputs) {
      std::string name = o.name;
      if (ranges::any_of(graph_.nodes, [&](const Node& n) { return n.name == name; })) name += "#";
      interface += value_line("output", name, graph_[o.node]);
      body += in_lines({name, "=", "Identity", name_[at(o.node)]});
    }
    return interface + constants_ + body;
  }

 private:
  bool reads(const std::string& input) const {
    return ranges::any_of(graph_.nodes, [&](const Node& n) { return n.op == Op::input && n.name == input; });
  }

  std::string value_line(const char* word, const std::string& name, const Node& n) const {
    std::vector<std::string> words{word, name, n.type == graph::Type::real ? "float" : "int32"};
    for (const Dim& d : n.shape) {
      words.push_back(d.known() ? fmt::format("{}", d.value()) : to_string(d));
      std::erase(words.back(), ' ');
    }
    return in_lines(words);
  }

  /// A broadcast that operators of ONNX do themselves: all its readers work element by element, beside an operand of
  /// the whole shape.
  void find_thin() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) thin_[i] = graph_.nodes[i].op == Op::broadcast;
    for (const Node& n : graph_.nodes) {
      const bool spreads =
          is_elementwise(n.op) && ranges::any_of(n.operands, [&](NodeId o) { return graph_[o].op != Op::broadcast; });
      for (NodeId o : n.operands)
        if (!spreads) thin_[at(o)] = false;
    }
    for (const Region& r : graph_.regions)
      for (NodeId id : r.yields) thin_[at(id)] = false;
    for (const Output& o : graph_.outputs) thin_[at(o.node)] = false;
  }

  /// The lines of a block that is repeated; `{}` in them is the layer's number.
  std::string repeated(const Region& r, const std::string& lines) const {
    if (r.reversed || r.mirror != graph::none) throw Error("a forward pass with layers in reverse has no ONNX");
    std::string out = fmt::format("layers {}\n", r.count);
    for (std::size_t k = 0; k < r.carries.size(); ++k) {
      const NodeId carry = r.carries[k];
      out += in_lines({"carry", name_[at(carry)], name_[at(graph_[carry].operands[0])], name_[at(r.yields[k])]});
    }
    return out + lines + "end\n";
  }

  /// A name for the next value of the node: its module and number, which no checkpoint's key is like.
  std::string fresh() {
    const Node& n = graph_[id_];
    std::string path = n.path;
    if (n.region && path.find('{') == std::string::npos) path += path.empty() ? "{}" : ".{}";
    const int part = parts_++;
    return part ? fmt::format("{}#{}.{}", path, id_, part) : fmt::format("{}#{}", path, id_);
  }

  /// A node of ONNX's.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& attributes = {}) {
    const std::string name = fresh();
    std::vector<std::string> words{name, "=", op};
    words.insert(words.end(), inputs.begin(), inputs.end());
    words.insert(words.end(), attributes.begin(), attributes.end());
    nodes_ += in_lines(words);
    return name;
  }

  /// Integers as a list, which stands once.
  std::string integers(const std::vector<std::int64_t>& numbers) {
    const std::string name = fmt::format("#ints:{}", fmt::join(numbers, ","));
    if (!known_.insert(name).second) return name;
    std::vector<std::string> words{"int64", name, fmt::format("{}", numbers.size()), ":"};
    for (std::int64_t number : numbers) words.push_back(fmt::format("{}", number));
    constants_ += in_lines(words);
    return name;
  }
  std::string axes_list(const std::vector<int>& axes) { return integers({axes.begin(), axes.end()}); }

  /// A number, which stands once.
  std::string number(double value) {
    const std::string name = "#float:" + float_text(value);
    if (known_.insert(name).second) constants_ += in_lines({"float", name, ":", float_text(value)});
    return name;
  }

  std::string table(const Node& n) {
    const std::string name = fmt::format("#table:{}", id_);
    std::vector<std::string> words{"float", name};
    for (const Dim& d : n.shape) words.push_back(fmt::format("{}", d.value()));
    words.push_back(":");
    for (double value : n.data) words.push_back(float_text(value));
    constants_ += in_lines(words);
    return name;
  }

  /// A dim that is known when the model runs, as a list of one integer.
  std::string extent_of_batch(const Dim& dim) {
    const Extent e = extent(dim);
    std::string value = node("Shape", {input_of(declared_)}, {"start=0", "end=1"});
    if (e.per_batch != 1) value = node("Mul", {value, integers({e.per_batch})});
    if (e.fixed != 0) value = node("Add", {value, integers({e.fixed})});
    return value;
  }
  std::string extents(const std::vector<Dim>& shape) {
    std::vector<std::int64_t> known;
    std::vector<std::string> parts;
    const auto close = [&] {
      if (!known.empty()) parts.push_back(integers(std::exchange(known, {})));
    };
    for (const Dim& d : shape) {
      if (d.known()) {
        known.push_back(d.value());
        continue;
      }
      close();
      parts.push_back(extent_of_batch(d));
    }
    if (parts.empty()) return integers(known);
    close();
    return parts.size() == 1 ? parts[0] : node("Concat", parts, {"axis=0"});
  }

  /// The numbers of x in another shape, of whose dims the batch makes at most one unknown.
  std::string reshape(const std::string& x, const std::vector<Dim>& from, const std::vector<Dim>& to) {
    if (from == to) return x;
    std::vector<std::int64_t> sizes;
    for (const Dim& d : to) sizes.push_back(d.known() ? d.value() : -1);
    if (std::count(sizes.begin(), sizes.end(), -1) > 1) return node("Reshape", {x, extents(to)});
    return node("Reshape", {x, integers(sizes)});
  }

  std::string transpose(const std::string& x, const std::vector<int>& order) {
    if (std::is_sorted(order.begin(), order.end())) return x;
    return node("Transpose", {x}, {"perm=" + list(order)});
  }

  /// With new dims of one element, so that dim i stands at axes[i] of `rank`.
  std::string unsqueeze(const std::string& x, const std::vector<int>& axes, std::size_t rank) {
    const std::vector<int> others = other_axes(rank, axes);
    return others.empty() ? x : node("Unsqueeze", {x, axes_list(others)});
  }
  /// The same for an operator that spreads its operands: dims in front are its own business.
  std::string aligned(const std::string& x, const std::vector<int>& axes, std::size_t rank) {
    return are_last(axes, rank) ? x : unsqueeze(x, axes, rank);
  }

  std::string broadcast(const Node& n) {
    const std::string x = operand(n, 0);
    if (thin_[at(id_)]) return aligned(x, n.axes, n.shape.size());
    if (n.shape == graph_[n.operands[0]].shape) return x;
    return node("Expand", {unsqueeze(x, n.axes, n.shape.size()), extents(n.shape)});
  }

  std::string rearrange(const Node& n) {
    const graph::Rearrangement& r = n.rearrangement;
    std::vector<int> before, after, order;
    for (const std::vector<int>& dim : r.from) before.insert(before.end(), dim.begin(), dim.end());
    for (const std::vector<int>& dim : r.to) after.insert(after.end(), dim.begin(), dim.end());
    const auto dims = [&](const std::vector<int>& atoms) {
      std::vector<Dim> shape;
      for (int atom : atoms) shape.push_back(r.atoms[static_cast<std::size_t>(atom)]);
      return shape;
    };
    for (int atom : after) order.push_back(static_cast<int>(ranges::find(before, atom) - before.begin()));
    const std::vector<Dim>& from = graph_[n.operands[0]].shape;
    if (std::is_sorted(order.begin(), order.end())) return reshape(operand(n, 0), from, n.shape);
    const std::string split = reshape(operand(n, 0), from, dims(before));
    return reshape(transpose(split, order), dims(after), n.shape);
  }

  /// The windows of each number of the kernel, one behind the other.
  std::string unfold(const Node& n) {
    const auto axis = static_cast<std::size_t>(n.axes[0]);
    const std::int64_t length = graph_[n.operands[0]].shape[axis].value();
    const std::int64_t kernel = n.shape[axis].value(), along = (n.shape[axis + 1].value() - 1) * n.stride;
    const std::int64_t before = std::max<std::int64_t>(-n.offset, 0);
    const std::int64_t behind = std::max<std::int64_t>(n.offset + (kernel - 1) * n.dilation + along + 1 - length, 0);
    std::string x = operand(n, 0);
    if (before > 0 || behind > 0) {
      std::vector<std::int64_t> pads(2 * graph_[n.operands[0]].shape.size());
      pads[axis] = before;
      pads[axis + pads.size() / 2] = behind;
      x = node("Pad", {x, integers(pads)});
    }
    std::vector<std::string> taps;
    for (std::int64_t k = 0; k < kernel; ++k) {
      const std::int64_t first = n.offset + before + k * n.dilation;
      const std::string tap =
          node("Slice", {x, integers({first}), integers({first + along + 1}), axes_list(n.axes), integers({n.stride})});
      taps.push_back(node("Unsqueeze", {tap, axes_list(n.axes)}));
    }
    return node("Concat", taps, {fmt::format("axis={}", axis)});
  }

  std::string slice(const Node& n) {
    const auto axis = static_cast<std::size_t>(n.axes[0]);
    // Counted from the end, which may be of the batch; what lies behind the slice always has a size.
    const std::int64_t behind = (graph_[n.operands[0]].shape[axis] - n.shape[axis]).value() - n.offset;
    const std::int64_t end = behind ? -behind : INT64_MAX;
    return node("Slice", {operand(n, 0), integers({n.offset}), integers({end}), axes_list(n.axes)});
  }

  /// An einsum that is a product of matrices, after transposing the last two dims of the operands where that is needed;
  /// "" where it is none. Left: [batch..., m..., k], right: [batch..., k, n], result: [batch..., m..., n].
  std::string product(const Node& n, std::size_t left, std::size_t right) {
    const std::vector<int>&a = n.letters[left], &b = n.letters[right], &result = n.letters.back();
    std::size_t batch = 0;
    while (batch < a.size() && batch < b.size() && batch < result.size() && a[batch] == b[batch] &&
           a[batch] == result[batch])
      ++batch;
    if (b.size() != batch + 2 || a.size() <= batch || result.size() <= batch) return "";
    if (batch && a.size() != batch + 2) return "";
    const auto is_summed = [&](int letter) { return ranges::contains(a, letter) && !ranges::contains(result, letter); };
    const bool right_turned = is_summed(b[batch + 1]), left_turned = a.size() == batch + 2 && is_summed(a[batch]);
    const int k = b[batch + (right_turned ? 1 : 0)], column = b[batch + (right_turned ? 0 : 1)];
    std::vector<int> expected(a);
    if (left_turned) std::swap(expected[batch], expected[batch + 1]);
    if (expected.back() != k || ranges::contains(result, k)) return "";
    expected.back() = column;
    if (expected != result || ranges::contains(a, column)) return "";
    const auto turned = [&](std::size_t k_, std::size_t rank, bool turn) {
      std::vector<int> order(rank);
      std::iota(order.begin(), order.end(), 0);
      if (turn) std::swap(order[rank - 2], order[rank - 1]);
      return transpose(operand(n, k_), order);
    };
    const std::string x = turned(left, a.size(), left_turned), y = turned(right, b.size(), right_turned);
    return node("MatMul", {x, y});
  }

  std::string equation(const std::vector<std::vector<int>>& groups) const {
    static const std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::map<int, char> spelled;
    std::vector<std::string> texts;
    for (const std::vector<int>& group : groups) {
      std::string& text = texts.emplace_back();
      for (int letter : group) {
        if (spelled.size() == alphabet.size() && !spelled.contains(letter))
          throw Error("an einsum of more than 52 letters has no ONNX");
        text += spelled.try_emplace(letter, alphabet[spelled.size() % alphabet.size()]).first->second;
      }
    }
    return fmt::format("equation=\"{}->{}\"", fmt::join(texts.begin(), texts.end() - 1, ","), texts.back());
  }

  std::string einsum(const Node& n) {
    if (n.operands.size() == 1) {
      if (n.letters[0] == n.letters[1]) return operand(n, 0);
      return node("Einsum", {operand(n, 0)}, {equation(n.letters)});
    }
    for (std::size_t k : {0, 1}) {  // a number beside an array: equations of ONNX have letters for every operand
      if (!n.letters[k].empty()) continue;
      const std::vector<std::vector<int>> rest{n.letters[1 - k], n.letters[2]};
      const std::string other = operand(n, 1 - k);
      return node("Mul", {rest[0] == rest[1] ? other : node("Einsum", {other}, {equation(rest)}), operand(n, k)});
    }
    if (const std::string found = product(n, 0, 1); !found.empty()) return found;
    if (const std::string found = product(n, 1, 0); !found.empty()) return found;
    return node("Einsum", {operand(n, 0), operand(n, 1)}, {equation(n.letters)});
  }

  /// Over no axis, each of these is its operand.
  std::string reduce(const char* op, const std::string& x, const std::vector<int>& axes, bool keep) {
    if (axes.empty()) return x;
    const std::string kept = keep ? "keepdims=1" : "keepdims=0";
    return op == std::string("ReduceSum") ? node(op, {x, axes_list(axes)}, {kept})
                                          : node(op, {x}, {"axes=" + list(axes), kept});
  }

  std::string layer_norm(const Node& n) {
    const std::size_t rank = n.shape.size();
    const std::string x = operand(n, 0), weight = operand(n, 1), bias = operand(n, 2);
    if (!n.axes.empty() && are_last(n.axes, rank))
      return node("LayerNormalization", {x, weight, bias},
                  {fmt::format("axis={}", n.axes[0]), fmt::format("epsilon={}f", float_text(n.value))});
    const std::string centred = node("Sub", {x, reduce("ReduceMean", x, n.axes, true)});
    const std::string variance = reduce("ReduceMean", node("Mul", {centred, centred}), n.axes, true);
    const std::string deviation = node("Sqrt", {node("Add", {variance, number(n.value)})});
    const std::string value = node("Div", {centred, deviation});
    const std::string scaled = node("Mul", {value, aligned(weight, n.axes, rank)});
    return node("Add", {scaled, aligned(bias, n.axes, rank)});
  }

  std::string positive(const std::string& x) { return node("Greater", {x, number(0)}); }

  std::string operand(const Node& n, std::size_t k) const { return name_[at(n.operands[k])]; }

  /// Answers the name of the node's value, after the lines that compute it.
  std::string translate(const Node& n) {
    const auto x = [&](std::size_t k = 0) { return operand(n, k); };
    const auto binary = [&](const char* op) { return node(op, {x(), x(1)}); };
    switch (n.op) {
      case Op::input:
      case Op::parameter:
        return n.name;
      case Op::table:
        return table(n);
      case Op::arange:
        return node("Range", {number(0), number(static_cast<double>(n.shape[0].value())), number(1)});
      case Op::constant:
        return number(n.value);
      case Op::extent:
        return node("Squeeze", {node("Cast", {extents({n.dim})}, {"to=1"})});
      case Op::add:
        return binary("Add");
      case Op::subtract:
        return binary("Sub");
      case Op::multiply:
        return binary("Mul");
      case Op::divide:
        return binary("Div");
      case Op::maximum:
        return binary("Max");
      case Op::negate:
        return node("Neg", {x()});
      case Op::exp:
        return node("Exp", {x()});
      case Op::log:
        return node("Log", {x()});
      case Op::sqrt:
        return node("Sqrt", {x()});
      case Op::rsqrt:
        return node("Reciprocal", {node("Sqrt", {x()})});
      case Op::tanh:
        return node("Tanh", {x()});
      case Op::sin:
        return node("Sin", {x()});
      case Op::cos:
        return node("Cos", {x()});
      case Op::erf:
        return node("Erf", {x()});
      case Op::gelu: {  // an operator of opset 20; engines know these as one
        const std::string part = node("Erf", {node("Div", {x(), number(std::numbers::sqrt2)})});
        const std::string product = node("Mul", {x(), node("Add", {part, number(1)})});
        return node("Mul", {product, number(0.5)});
      }
      case Op::relu:
        return node("Relu", {x()});
      case Op::step:
        return node("Cast", {positive(x())}, {"to=1"});
      case Op::equal:
        return node("Cast", {binary("Equal")}, {"to=1"});
      case Op::select:
        return node("Where", {positive(x()), x(1), x(2)});
      case Op::copy:
      case Op::stop_gradient:
        return x();
      case Op::integers:
        return node("Cast", {x()}, {"to=7"});
      case Op::broadcast:
        return broadcast(n);
      case Op::one_hot: {
        const std::string zero_one = one_hot_values();
        return node("OneHot", {node("Cast", {x()}, {"to=7"}), extents({n.shape.back()}), zero_one}, {"axis=-1"});
      }
      case Op::rearrange:
        return rearrange(n);
      case Op::slice:
        return slice(n);
      case Op::unfold:
        return unfold(n);
      case Op::concat: {
        std::vector<std::string> parts;
        for (std::size_t k = 0; k < n.operands.size(); ++k) parts.push_back(x(k));
        return node("Concat", parts, {fmt::format("axis={}", n.axes[0])});
      }
      case Op::einsum:
        return einsum(n);
      case Op::reduce_sum:
        return reduce("ReduceSum", x(), n.axes, false);
      case Op::reduce_max:
        return reduce("ReduceMax", x(), n.axes, false);
      case Op::softmax:
        return node("Softmax", {x()}, {fmt::format("axis={}", n.axes[0])});
      case Op::log_softmax:
        return node("LogSoftmax", {x()}, {fmt::format("axis={}", n.axes[0])});
      case Op::layer_norm:
        return layer_norm(n);
      case Op::gather:
        return node("Gather", {x(), x(1)}, {"axis=0"});
      case Op::carry:
        return fresh();
      case Op::carry_out: {
        const Region& r = graph_.regions[graph_[n.operands[0]].region];
        const auto k = ranges::find(r.carries, n.operands[0]) - r.carries.begin();
        return of_layer(name_[at(r.yields[k])], r.count - 1);
      }
      // Of training or of a step: no declared forward pass without its dropouts has them.
      case Op::keep:
      case Op::fold:
      case Op::cache:
      case Op::gelu_gradient:
      case Op::cross_entropy:
      case Op::dropout:
      case Op::gradient:
        break;
    }
    throw Error(fmt::format("a {} has no ONNX: it is no part of a forward pass", op_name(n.op)));
  }

  std::string one_hot_values() {
    const std::string name = "#off_on";
    if (known_.insert(name).second) constants_ += in_lines({"float", name, "2", ":", "0", "1"});
    return name;
  }

  const Graph& declared_;
  const Graph graph_;
  std::vector<std::string> name_;  // of a node's value
  std::vector<bool> thin_;         // a node's value is spread by who reads it
  NodeId id_ = 0;                  // the node that is translated
  int parts_ = 0;                  // values of it that have names
  std::set<std::string> known_;    // constants that have their line
  std::string constants_, nodes_;  // lines
};

}  // namespace

std::string onnx_text(const Graph& declared) { return Translation(declared).run(); }

}  // namespace tessera::codegen
