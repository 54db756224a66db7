#include "tests/codegen/support/interpreter.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>

#include "codegen/passes/ops.hpp"

namespace tessera::test {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Op;
using graph::Output;
using graph::Region;

namespace {

using Index = std::vector<std::int64_t>;

std::int64_t count(const Index& shape) {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

/// Calls visit with every index below shape, the last one running fastest.
void every(const Index& shape, const std::function<void(const Index&)>& visit) {
  if (count(shape) == 0) return;
  Index index(shape.size(), 0);
  while (true) {
    visit(index);
    std::size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

double& element(Array& array, const Index& index) {
  std::int64_t place = 0;
  for (std::size_t i = 0; i < index.size(); ++i) place = place * array.shape[i] + index[i];
  return array.numbers.at(static_cast<std::size_t>(place));
}
double element(const Array& array, const Index& index) { return element(const_cast<Array&>(array), index); }

Array filled(Index shape, double value) {
  Array array{std::move(shape), {}};
  array.numbers.assign(static_cast<std::size_t>(count(array.shape)), value);
  return array;
}

/// Of eight significant bits; of two that are as near, the even one.
double nearest_bf16(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

double phi(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double normal(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double pointwise(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::subtract:
      return a - b;
    case Op::multiply:
      return a * b;
    case Op::divide:
      return a / b;
    case Op::maximum:
      return std::max(a, b);
    case Op::equal:
      return a == b;
    case Op::negate:
      return -a;
    case Op::exp:
      return std::exp(a);
    case Op::log:
      return std::log(a);
    case Op::sqrt:
      return std::sqrt(a);
    case Op::rsqrt:
      return 1 / std::sqrt(a);
    case Op::tanh:
      return std::tanh(a);
    case Op::sin:
      return std::sin(a);
    case Op::cos:
      return std::cos(a);
    case Op::erf:
      return std::erf(a);
    case Op::gelu:
      return a * normal(a);
    case Op::gelu_gradient:
      return normal(a) + a * phi(a);
    case Op::relu:
      return std::max(a, 0.0);
    case Op::step:
      return a > 0;
    case Op::copy:
      return a;
      TESSERA_TERNARY_OPS(TESSERA_OP_CASE)
      TESSERA_OTHER_OPS(TESSERA_OP_CASE)
      break;
  }
  throw std::logic_error("no function of numbers");
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, std::int64_t batch, const Arrays& given, Operands factors, const Rounds& rounds)
      : graph_(graph),
        batch_(batch),
        given_(given),
        factors_(factors),
        rounds_(rounds),
        values_(graph.nodes.size()),
        layers_(graph.regions.size()) {}

  Arrays run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const int region = graph_.nodes[i].region;
      if (region == 0) {
        values_[i] = evaluate(static_cast<NodeId>(i));
        continue;
      }
      if (layers_[at(region)].empty()) repeat(region);
    }
    reader_ = graph::none;
    taken_.clear();
    Arrays results;
    for (const Output& o : graph_.outputs) {
      const int region = graph_[o.node].region;
      if (region == 0)
        results[o.name] = value(o.node);
      else
        for (int layer = 0; layer < of(region).count; ++layer)
          results[layer_name(o.name, layer)] = layers_[at(region)][at(layer)].at(o.node);
    }
    return results;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  const Region& of(int region) const { return graph_.regions[at(region)]; }

  /// All nodes of a region, wherever they stand among others: all that they read from outside stands before the first
  /// of them, but for copies of what carries begin with.
  void repeat(int region) {
    const Region& r = of(region);
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].region == region) nodes.push_back(i);
    layers_[at(region)].resize(at(r.count));
    for (int run = 0; run < r.count; ++run) {
      layer_ = r.reversed ? r.count - 1 - run : run;
      for (const std::size_t i : nodes) {
        const auto id = static_cast<NodeId>(i);
        reader_ = graph::none;
        if (graph_.nodes[i].op == Op::carry)
          values_[i] = run == 0 ? beginning(graph_.nodes[i].operands[0]) : carried_.at(id);
        else
          values_[i] = evaluate(id);
      }
      for (std::size_t k = 0; k < r.carries.size(); ++k) carried_[r.carries[k]] = values_[at(r.yields[k])];
      for (const std::size_t i : nodes) layers_[at(region)][at(layer_)][static_cast<NodeId>(i)] = values_[i];
    }
  }

  Array beginning(NodeId id) {
    if (values_[at(id)].numbers.empty()) values_[at(id)] = evaluate(id);
    reader_ = graph::none;
    return value(id);
  }

  /// The value of an operand of a node in `region`: of the same layer where the region's mirror computed it.
  const Array& value(NodeId id, int region = 0) const {
    const int from = graph_[id].region;
    const Array& exact = from == 0 || from == region ? values_[at(id)] : layers_[at(from)][at(layer_)].at(id);
    if (!rounds_ || reader_ == graph::none) return exact;
    auto [taken, fresh] = taken_.try_emplace(id, std::nullopt);
    if (fresh && rounds_(reader_, id)) {
      taken->second = exact;
      for (double& number : taken->second->numbers) number = nearest_bf16(number);
    }
    return taken->second ? *taken->second : exact;
  }

  Array bound(const Node& n) const {
    const std::string name = n.region == 0 ? n.name : layer_name(n.name, layer_);
    const Array& array = given_.at(name);
    if (static_cast<std::int64_t>(array.numbers.size()) != count(extents(n.shape, batch_)))
      throw std::invalid_argument(name + " has another number of elements than the graph says");
    return {extents(n.shape, batch_), array.numbers};
  }

  Array evaluate(NodeId id) {
    reader_ = id;
    taken_.clear();
    const Node& n = graph_[id];
    auto x = [&](std::size_t k = 0) -> const Array& { return value(n.operands[k], n.region); };
    const Index shape = extents(n.shape, batch_);
    Array y = filled(shape, 0);
    auto map = [&](const std::function<double(const Index&)>& f) {
      every(shape, [&](const Index& i) { element(y, i) = f(i); });
    };
    switch (n.op) {
      case Op::input:
      case Op::parameter:
        return bound(n);
      case Op::table:
        return {shape, n.data};
      case Op::arange:
        map([](const Index& i) { return static_cast<double>(i[0]); });
        break;
      case Op::constant:
        return filled({}, n.value);
      case Op::extent:
        return filled({}, static_cast<double>(n.dim.value(batch_)));
      case Op::carry_out:
        return carried_.at(n.operands[0]);
      case Op::broadcast:
        map([&](const Index& i) {
          Index from;
          for (int axis : n.axes) from.push_back(i[at(axis)]);
          return element(x(), from);
        });
        break;
      case Op::integers:
      case Op::stop_gradient:
        return x();
      case Op::one_hot:
        map([&](const Index& i) {
          return element(x(), Index(i.begin(), i.end() - 1)) == static_cast<double>(i.back()) ? 1.0 : 0.0;
        });
        break;
      case Op::rearrange:
        map([&](const Index& i) { return element(x(), rearranged(n, i)); });
        break;
      case Op::slice:
        map([&](Index i) {
          i[at(n.axes[0])] += n.offset;
          return element(x(), i);
        });
        break;
      case Op::concat:
        map([&](Index i) {
          std::int64_t& along = i[at(n.axes[0])];
          std::size_t part = 0;
          while (along >= x(part).shape[at(n.axes[0])]) along -= x(part++).shape[at(n.axes[0])];
          return element(x(part), i);
        });
        break;
      case Op::unfold:
        map([&](Index i) {
          const std::size_t axis = at(n.axes[0]);
          i[axis] = n.offset + i[axis] * n.dilation + i[axis + 1] * n.stride;
          i.erase(i.begin() + n.axes[0] + 1);
          return i[axis] < 0 || i[axis] >= x().shape[axis] ? 0 : element(x(), i);
        });
        break;
      case Op::fold:
        map([&](const Index& i) {
          const std::size_t axis = at(n.axes[0]);
          double sum = 0;
          for (std::int64_t k = 0; k < x().shape[axis]; ++k) {
            const std::int64_t steps = i[axis] - n.offset - k * n.dilation;
            if (steps % n.stride != 0 || steps < 0 || steps / n.stride >= x().shape[axis + 1]) continue;
            Index from = i;
            from[axis] = steps / n.stride;
            from.insert(from.begin() + n.axes[0], k);
            sum += element(x(), from);
          }
          return sum;
        });
        break;
      case Op::cache:
        throw std::logic_error("a cache is the caller's: the interpreter has none");
      case Op::einsum:
        einsum(n, y);
        break;
      case Op::reduce_sum:
        reduce(n, x(), y, 0, [](double a, double b) { return a + b; });
        break;
      case Op::reduce_max:
        reduce(n, x(), y, -std::numeric_limits<double>::infinity(), [](double a, double b) { return std::max(a, b); });
        break;
      case Op::softmax:
        softmax(n, x(), y);
        break;
      case Op::log_softmax:
        softmax(n, x(), y);
        for (double& number : y.numbers) number = std::log(number);
        break;
      case Op::select:
        map([&](const Index& i) { return element(x(), i) > 0 ? element(x(1), i) : element(x(2), i); });
        break;
      case Op::gather:
        map([&](const Index& i) {
          const auto picks = static_cast<std::ptrdiff_t>(x(1).shape.size());
          Index from{static_cast<std::int64_t>(element(x(1), Index(i.begin(), i.begin() + picks)))};
          from.insert(from.end(), i.begin() + picks, i.end());
          return element(x(), from);
        });
        break;
      case Op::keep:
        map([&](const Index& i) { return factor(n, place(i, in_fours(shape))); });
        break;
      case Op::gradient:
        throw std::logic_error("a gradient is expanded before a graph is run");
      case Op::dropout: {
        if (!given_.contains("random")) return x();  // evaluation
        Index varied;
        for (int axis : n.axes) varied.push_back(shape[at(axis)]);
        map([&](const Index& i) {
          Index index;
          for (int axis : n.axes) index.push_back(i[at(axis)]);
          return element(x(), i) * factor(n, place(index, in_fours(varied)));
        });
        break;
      }
      case Op::layer_norm:
        layer_norm(n, x(), x(1), x(2), y);
        break;
      case Op::cross_entropy: {
        const std::size_t rows = x(1).numbers.size(), columns = x().numbers.size() / rows;
        for (std::size_t row = 0; row < rows; ++row) {
          const double* const logits = &x().numbers[row * columns];
          double sum = 0;
          for (std::size_t j = 0; j < columns; ++j) sum += std::exp(logits[j]);
          y.numbers[0] +=
              (std::log(sum) - logits[static_cast<std::size_t>(x(1).numbers[row])]) / static_cast<double>(rows);
        }
        break;
      }
      case Op::carry:  // bound when its region begins a layer
        throw std::logic_error("a carry is not computed");
        TESSERA_UNARY_OPS(TESSERA_OP_CASE)
        TESSERA_BINARY_OPS(TESSERA_OP_CASE)
        map([&](const Index& i) {
          return pointwise(n.op, element(x(), i), n.operands.size() == 2 ? element(x(1), i) : 0.0);
        });
    }
    return y;
  }

  static std::int64_t place(const Index& index, const Index& shape) {
    std::int64_t number = 0;
    for (std::size_t i = 0; i < index.size(); ++i) number = number * shape[i] + index[i];
    return number;
  }

  /// Rows filled up to multiples of four.
  static Index in_fours(Index shape) {
    if (!shape.empty()) shape.back() = (shape.back() + 3) / 4 * 4;
    return shape;
  }

  /// A factor of a dropout or its keep, of the running layer: see Op::keep and Philox4x32-10, Salmon et al. 2011.
  double factor(const Node& n, std::int64_t number) const {
    std::uint32_t state[4];
    for (std::size_t i = 0; i < 4; ++i) state[i] = static_cast<std::uint32_t>(given_.at("random").numbers.at(i));
    const auto layer = static_cast<std::uint32_t>(n.region == 0 ? 0 : layer_);
    std::uint32_t word[4] = {static_cast<std::uint32_t>(number) / 4,
                             (layer << 16) + static_cast<std::uint32_t>(n.offset), state[2], state[3]};
    for (std::uint32_t round = 0; round < 10; ++round) {
      const std::uint64_t even = 0xD2511F53ull * word[0], odd = 0xCD9E8D57ull * word[2];
      const auto high = [](std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); };
      const std::uint32_t first = high(odd) ^ word[1] ^ (state[0] + round * 0x9E3779B9u);
      const std::uint32_t third = high(even) ^ word[3] ^ (state[1] + round * 0xBB67AE85u);
      word[0] = first;
      word[1] = static_cast<std::uint32_t>(odd);
      word[2] = third;
      word[3] = static_cast<std::uint32_t>(even);
    }
    return word[number % 4] < std::round(std::ldexp(n.value, 32)) ? 0 : 1 / (1 - n.value);
  }

  /// The operand's index of a rearrangement's result index.
  Index rearranged(const Node& n, const Index& index) const {
    const Index atoms = extents(n.rearrangement.atoms, batch_);
    Index atom(atoms.size(), 0), from;
    for (std::size_t d = 0; d < index.size(); ++d) {
      std::int64_t rest = index[d];
      for (std::size_t k = n.rearrangement.to[d].size(); k-- > 0;) {
        const std::size_t a = at(n.rearrangement.to[d][k]);
        atom[a] = rest % atoms[a];
        rest /= atoms[a];
      }
    }
    for (const std::vector<int>& dim : n.rearrangement.from) {
      std::int64_t place = 0;
      for (int a : dim) place = place * atoms[at(a)] + atom[at(a)];
      from.push_back(place);
    }
    return from;
  }

  /// Whether an operand of a product of two differs along an axis of the result that the other one does not know.
  bool runs_alone(const Node& n, std::size_t operand) const {
    const Array& mine = value(n.operands[operand], n.region);
    bool alone = false;
    every(mine.shape, [&](const Index& index) {
      for (std::size_t i = 0; i < index.size() && !alone; ++i) {
        const int letter = n.letters[operand][i];
        if (!std::ranges::count(n.letters[2], letter) || std::ranges::count(n.letters[1 - operand], letter)) continue;
        Index first = index;
        first[i] = 0;
        alone = element(mine, index) != element(mine, first);
      }
    });
    return alone;
  }
  bool is_matrix_product(const Node& n) const {
    const auto stays = [&](int letter) { return std::ranges::count(n.letters.back(), letter) > 0; };
    const auto chooses = [&](NodeId operand) { return graph_[operand].op == Op::one_hot; };  // a row, and sums nothing
    return n.operands.size() == 2 && std::ranges::none_of(n.operands, chooses) && runs_alone(n, 0) &&
           runs_alone(n, 1) && !(std::ranges::all_of(n.letters[0], stays) && std::ranges::all_of(n.letters[1], stays));
  }

  void einsum(const Node& n, Array& y) const {
    const bool rounds = factors_ == Operands::bf16 && is_matrix_product(n);
    std::map<int, std::size_t> place;
    Index shape;
    for (std::size_t k = 0; k < n.operands.size(); ++k)
      for (std::size_t i = 0; i < n.letters[k].size(); ++i)
        if (place.emplace(n.letters[k][i], shape.size()).second)
          shape.push_back(value(n.operands[k], n.region).shape[i]);
    // Of an array: how far each loop's next index is, so that a multiply-add costs no allocation.
    const auto strides = [&](const std::vector<int>& letters, const Index& extents) {
      Index of_loops(shape.size(), 0);
      std::int64_t stride = 1;
      for (std::size_t i = letters.size(); i-- > 0; stride *= extents[i]) of_loops[place.at(letters[i])] += stride;
      return of_loops;
    };
    const auto walk = [](const Index& index, const Index& of_loops) {
      return std::inner_product(index.begin(), index.end(), of_loops.begin(), std::int64_t{0});
    };
    std::vector<const std::vector<double>*> factors;
    std::vector<Index> of_factors;
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const Array& x = value(n.operands[k], n.region);
      factors.push_back(&x.numbers);
      of_factors.push_back(strides(n.letters[k], x.shape));
    }
    const Index of_result = strides(n.letters.back(), y.shape);
    if (shape.empty()) return void(y.numbers.at(0) = multiplied(factors, Index(factors.size(), 0), rounds));
    // The innermost loop is the one with the shortest steps, and goes on by its strides alone: most of the time of a
    // large model is spent there.
    const auto step = [&](std::size_t loop) {
      std::int64_t sum = of_result[loop];
      for (const Index& of_factor : of_factors) sum += of_factor[loop];
      return sum;
    };
    std::size_t inner = shape.size() - 1;
    for (std::size_t loop = 0; loop < shape.size(); ++loop)
      if (shape[loop] > 1 && (shape[inner] == 1 || step(loop) < step(inner))) inner = loop;
    Index outer = shape;
    outer[inner] = 1;
    every(outer, [&](const Index& index) {
      Index from;
      for (const Index& of_factor : of_factors) from.push_back(walk(index, of_factor));
      std::int64_t to = walk(index, of_result);
      if (from.size() == 2 && !rounds)
        return add_products(*factors[0], from[0], of_factors[0][inner], *factors[1], from[1], of_factors[1][inner],
                            y.numbers, to, of_result[inner], shape[inner]);
      for (std::int64_t i = 0; i < shape[inner]; ++i, to += of_result[inner]) {
        y.numbers.at(at(to)) += multiplied(factors, from, rounds);
        for (std::size_t k = 0; k < from.size(); ++k) from[k] += of_factors[k][inner];
      }
    });
  }

  /// result[to + i * by] += a[from_a + i * by_a] * b[from_b + i * by_b] for i in [0, n), in this order.
  static void add_products(const std::vector<double>& a, std::int64_t from_a, std::int64_t by_a,
                           const std::vector<double>& b, std::int64_t from_b, std::int64_t by_b,
                           std::vector<double>& result, std::int64_t to, std::int64_t by, std::int64_t n) {
    const double* x = &a.at(at(from_a));
    const double* y = &b.at(at(from_b));
    double* z = &result.at(at(to));
    static_cast<void>(a.at(at(from_a + (n - 1) * by_a)) + b.at(at(from_b + (n - 1) * by_b)) +
                      result.at(at(to + (n - 1) * by)));
    if (by == 0) {
      double sum = *z;
      for (std::int64_t i = 0; i < n; ++i) sum += x[i * by_a] * y[i * by_b];
      *z = sum;
    } else {
      for (std::int64_t i = 0; i < n; ++i) z[i * by] += x[i * by_a] * y[i * by_b];
    }
  }

  static double multiplied(const std::vector<const std::vector<double>*>& factors, const Index& from, bool rounds) {
    double product = 1;
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const double factor = factors[k]->at(at(from[k]));
      product *= rounds ? nearest_bf16(factor) : factor;
    }
    return product;
  }

  static Index kept(const Index& index, const std::vector<int>& axes) {
    Index rest;
    for (std::size_t i = 0; i < index.size(); ++i)
      if (std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end()) rest.push_back(index[i]);
    return rest;
  }
  static void reduce(const Node& n, const Array& x, Array& y, double start, double (*join)(double, double)) {
    std::fill(y.numbers.begin(), y.numbers.end(), start);
    every(x.shape, [&](const Index& i) {
      double& sum = element(y, kept(i, n.axes));
      sum = join(sum, element(x, i));
    });
  }

  static void softmax(const Node& n, const Array& x, Array& y) {
    Array sums = filled(kept(x.shape, n.axes), 0);
    every(x.shape, [&](const Index& i) { element(sums, kept(i, n.axes)) += std::exp(element(x, i)); });
    every(x.shape, [&](const Index& i) { element(y, i) = std::exp(element(x, i)) / element(sums, kept(i, n.axes)); });
  }

  static void layer_norm(const Node& n, const Array& x, const Array& weight, const Array& bias, Array& y) {
    Array mean = filled(kept(x.shape, n.axes), 0), variance = mean;
    const double size = static_cast<double>(x.numbers.size()) / static_cast<double>(mean.numbers.size());
    every(x.shape, [&](const Index& i) { element(mean, kept(i, n.axes)) += element(x, i) / size; });
    every(x.shape, [&](const Index& i) {
      const double centred = element(x, i) - element(mean, kept(i, n.axes));
      element(variance, kept(i, n.axes)) += centred * centred / size;
    });
    every(x.shape, [&](const Index& i) {
      const Index row = kept(i, n.axes);
      Index inside;
      for (int axis : n.axes) inside.push_back(i[at(axis)]);
      const double v = (element(x, i) - element(mean, row)) / std::sqrt(element(variance, row) + n.value);
      element(y, i) = v * element(weight, inside) + element(bias, inside);
    });
  }

  const Graph& graph_;
  const std::int64_t batch_;
  const Arrays& given_;
  const Operands factors_;
  const Rounds& rounds_;
  NodeId reader_ = graph::none;                           // the node that is evaluated
  mutable std::map<NodeId, std::optional<Array>> taken_;  // by it: the rounded value, or as it is
  std::vector<Array> values_;
  std::vector<std::vector<std::map<NodeId, Array>>> layers_;  // by region, by layer
  std::map<NodeId, Array> carried_;                           // by carry: what the layer before yielded
  int layer_ = 0;
};

}  // namespace

std::string layer_name(const std::string& name, int layer) {
  const std::size_t hole = name.find('{');
  if (hole == std::string::npos) return name;
  const std::size_t end = name.find('}', hole);
  const std::string first = name.substr(hole + 1, end - hole - 1);  // "", "8", or "1:2" of every other layer
  const std::size_t colon = first.find(':');
  const int step = colon == std::string::npos ? 1 : std::stoi(first.substr(colon + 1));
  const int number = (first.empty() ? 0 : std::stoi(first)) + step * layer;
  return name.substr(0, hole) + std::to_string(number) + name.substr(end + 1);
}

std::vector<std::int64_t> extents(const std::vector<Dim>& shape, std::int64_t batch) {
  std::vector<std::int64_t> result;
  for (const Dim& dim : shape) result.push_back(dim.value(batch));
  return result;
}

Arrays interpret(const graph::Graph& graph, std::int64_t batch, const Arrays& given, Operands factors,
                 const Rounds& rounds) {
  return Interpreter(graph, batch, given, factors, rounds).run();
}

}  // namespace tessera::test
