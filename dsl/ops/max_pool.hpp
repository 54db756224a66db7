// max_pool: the largest number of each square of an image.
#pragma once

#include <cstdint>

#include "dsl/ops/conv2d.hpp"
#include "dsl/ops/reordered.hpp"

namespace tessera {

namespace detail {

constexpr Text max_pool_problem(const Shape& x, std::int64_t window) {
  Text t;
  const bool image = x.rank == 4 && window >= 1;
  bool known = true, fits = image;
  for (int axis = 2; image && axis < 4; ++axis) {
    known = known && x[axis].known();
    fits = fits && (!x[axis].known() || x[axis].value() >= window);
  }
  if (fits && known) return t;
  t.put("max_pool<").put(window).put("> of ");
  x.print(t);
  if (fits)
    t.put(" needs the size of the image, which is known only when the program runs [dim-unknown]");
  else
    t.put(": it needs an image [B, C, height, width] of at least one window [max-pool-input]");
  return t;
}

}  // namespace detail

/// The largest number of each square of `window` x `window`, which lie side by side; rows and columns that fill none
/// are left out: max_pool<2>(x) of [B, C, height, width] is [B, C, floor(height/2), floor(width/2)]. Where it stands
/// more than once the first one, in rows, gets the gradient. Sentences: [max-pool-input], [dim-unknown].
/// PyTorch equivalent: torch.nn.functional.max_pool2d(x, window).
template <std::int64_t window, AnyTensor X>
auto max_pool(const X& x) {
  if constexpr (poisoned<X>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::max_pool_problem(X::shape, window); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using D = typename X::dims;
      using K = Constant<window>;
      constexpr detail::Sweep down{X::shape[2].value(), window, window, 0, 1, 0};
      constexpr detail::Sweep across{X::shape[3].value(), window, window, 0, 1, 0};
      using OH = decltype(detail::swept<typename D::template at<2>, K, window, down.windows()>());
      using OW = decltype(detail::swept<typename D::template at<3>, K, window, across.windows()>());
      graph::Builder& r = recorder();
      const graph::NodeId rows = detail::record_windows(node_of(x), 2, down, K::value, OH::value);
      const graph::NodeId all = detail::record_windows(rows, 4, across, K::value, OW::value);
      graph::NodeId largest = graph::none;
      for (std::int64_t i = 0; i < window; ++i)
        for (std::int64_t j = 0; j < window; ++j) {
          const graph::NodeId row = r.slice(all, 2, i, Dim::constant(1));
          const graph::NodeId one = detail::reordered(r.slice(row, 4, j, Dim::constant(1)), {0, 1, 3, 5});
          largest =
              largest == graph::none ? one : r.select(r.unary(graph::Op::step, r.subtract(one, largest)), one, largest);
        }
      return TensorOf<Dims<typename D::template at<0>, typename D::template at<1>, OH, OW>>(largest);
    }
  }
}

/// max_pool as a module, for Sequential. PyTorch equivalent: torch.nn.MaxPool2d(window).
template <std::int64_t window>
struct MaxPool : Module {
  TESSERA_MEMBERS(MaxPool)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return max_pool<window>(x);
  }
};

}  // namespace tessera
