// Stack: one block repeated, each layer with parameters of its own; traced once. Stacks: several, one after the other.
#pragma once

#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dsl/module.hpp"
#include "dsl/ops/slice.hpp"
#include "dsl/ops/take.hpp"

namespace tessera {

namespace detail {

/// What a Stack's block takes and returns: what its forward declares; of a block without one, as a Sequential, what
/// comes in and what that becomes.
template <class Block, class X>
struct StackEnds {
  using In = X;
  using Out = Poison;
};
template <HasSignature Block, class X>
struct StackEnds<Block, X> {
  using Signature = detail::Signature<decltype(&Block::forward)>;
  static_assert(std::tuple_size_v<typename Signature::arguments> == 1, "a Stack's block takes one tensor");
  using In = std::tuple_element_t<0, typename Signature::arguments>;
  using Out = typename Signature::result;
};
template <class Block, class X>
  requires(!HasSignature<Block> && !poisoned<X>)
struct StackEnds<Block, X> {
  using In = TensorOf<typename X::dims>;
  using Out = decltype(std::declval<const Block&>()(std::declval<const In&>()));
};

/// What stands for the number of a layer in keys: {}, or {8} where the first of the layers is number 8.
inline std::string layer_from(int first) { return first ? "{" + std::to_string(first) + "}" : "{}"; }

}  // namespace detail

/// `Count` layers of Block, each with its own parameters, the output of one being the input of the next. The block is
/// recorded once, as a region that runs Count times, whose parameter keys hold {} for the layer number:
/// "blocks.{}.norm1.weight". Block is a module, or a Sequential of some ("layers.{}.0.norm.weight"), whose forward
/// takes one tensor and returns one of the same shape, else [stack-shape]. PyTorch equivalent: a torch.nn.ModuleList of
/// blocks, applied in a loop.
///
/// What else a layer needs it is given: blocks(x, give) calls give(block) before the block, to put tensors that all
/// layers share into it; blocks(x, each, give) calls give(block, slice) with the layer's own slice of each [Count,
/// ...].
///
/// Throws std::logic_error while tracing when one Stack is applied twice or stands within another.
template <class Block, auto Count>
struct Stack {
  static constexpr int count = count_of<Count>();

  std::string path{};
  std::string region{};  ///< its name, which no other has
  int first = 0;         ///< number of the first layer

  template <class X>
  auto operator()(const X& x) const {
    return layers<false>(x, Tensor<>(), [](const Block&, const Tensor<>&) {});
  }
  template <class X, class Give>
  auto operator()(const X& x, const Give& give) const {
    return layers<false>(x, Tensor<>(), [&](Block& block, const Tensor<>&) { give(block); });
  }
  template <class X, AnyTensor Each, class Give>
  auto operator()(const X& x, const Each& each, const Give& give) const {
    return layers<true>(x, each, give);
  }

  void bind(const std::string& where) { path = region = where; }
  /// As layers `from` and following of several stacks.
  void bind(const std::string& where, int from) {
    path = where;
    first = from;
    region = detail::join(where, std::to_string(from) + "-" + std::to_string(from + count - 1));
  }

 private:
  template <bool sliced, class X, class Each, class Give>
  auto layers(const X& x, [[maybe_unused]] const Each& each, const Give& give) const {
    using Ends = detail::StackEnds<Block, X>;
    using In = typename Ends::In;
    using Out = typename Ends::Out;
    constexpr auto problem = [] {
      Text t;
      if constexpr (!poisoned<In, Out> && requires { Block::module_name; }) {
        if (In::shape == Out::shape) return t;
        t.put("Stack repeats ").put(Block::module_name).put(", which takes ");
        In::shape.print(t);
        t.put(" and returns ");
        Out::shape.print(t);
        t.put(": ");
        explain_mismatch(t, Out::shape, In::shape);
        t.put("; a layer has to return the shape it takes [stack-shape]");
      }
      return t;
    };
    using Call = detail::CallProblem<Block, X>;
    if constexpr (poisoned<X, In, Out, Each>) {
      return Poison{};
    } else if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else if constexpr (!fits<Call>) {
      return Refusal<Call>::poison();
    } else {
      graph::Builder& builder = recorder();
      if (path.empty()) detail::demand_listed(this);
      if (builder.region != 0) throw std::logic_error(path + " stands within another Stack; stacks do not nest");
      for (const graph::Region& other : builder.graph().regions)
        if (other.path == region)
          throw std::logic_error(region + " is applied twice; apply a plain block to share weights");
      PathScope scope(path);
      const In entering = x;
      builder.begin_region(region, count);
      Block block;
      tessera::bind(block, detail::join(path, detail::layer_from(first)));
      const In carried(builder.carry(node_of(entering)));
      if constexpr (sliced) {
        // Every layer takes the first slice and hands them on with that one last.
        const graph::NodeId slices = builder.carry(node_of(each));
        const Dim all = Each::shape[0];
        graph::NodeId rest = slices;
        if (all.value() > 1) {
          const graph::NodeId others = builder.slice(slices, 0, 1, Dim::constant(all.value() - 1));
          rest = builder.concat({others, builder.slice(slices, 0, 0, Dim::constant(1))}, 0, all);
        }
        give(block, detail::taken<0>(TensorOf<typename Each::dims>(slices), 0));
        const Out left = block(carried);
        return Out(builder.end_region({node_of(left), rest}).front());
      } else {
        give(block, each);
        const Out left = block(carried);
        return Out(builder.end_region({node_of(left)}).front());
      }
    }
  }
};

/// Stacks of different blocks, one after the other, whose layers are numbered through: Stacks<Stack<A, 8>, Stack<B, 4>>
/// blocks has the keys blocks.0 to blocks.7 of A, and blocks.8 to blocks.11 of B. What layers need besides they are
/// given as those of a Stack are: blocks(x, give), blocks(x, each, give). blocks.each(x), with the same arguments, is a
/// tuple of what each of the stacks gives, the last of which is blocks(x). PyTorch equivalent: a torch.nn.ModuleList of
/// unlike blocks, applied in a loop.
template <class First, class... Rest>
struct Stacks {
  static constexpr int count = First::count + (0 + ... + Rest::count);
  static constexpr std::size_t size = 1 + sizeof...(Rest);

  std::tuple<First, Rest...> stacks{};

  /// The number of the first layer of stack i, or of the first layer behind the last stack.
  static constexpr int first(std::size_t i) {
    constexpr int counts[] = {First::count, Rest::count...};
    return std::accumulate(counts, counts + i, 0);
  }

  template <class X, class... Give>
  auto operator()(const X& x, const Give&... give) const {
    return std::get<size - 1>(each(x, give...));
  }
  template <class X, class... Give>
  auto each(const X& x, const Give&... give) const {
    return from<0>(x, give...);
  }

  void bind(const std::string& where) {
    int next = 0;
    std::apply([&](auto&... stack) { (stack.bind(where, std::exchange(next, next + stack.count)), ...); }, stacks);
  }

 private:
  template <std::size_t i, class X, class... Give>
  auto from(const X& x, const Give&... give) const {
    if constexpr (i == size) {
      return std::tuple<>();
    } else {
      const auto y = std::get<i>(stacks)(x, own<i>(give)...);
      return std::tuple_cat(std::tuple(y), from<i + 1>(y, give...));
    }
  }

  /// Of a tensor with a slice for each layer, those of stack i.
  template <std::size_t i, class Give>
  static auto own(const Give& give) {
    if constexpr (AnyTensor<Give>)
      return slice<0>(give, Constant<first(i)>{}, Constant<first(i + 1) - first(i)>{});
    else
      return give;
  }
};

}  // namespace tessera
