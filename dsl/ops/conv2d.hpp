// conv2d: a convolution of images of any stride, padding and dilation; Conv2d: a learned one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"
#include "dsl/ops/einsum.hpp"
#include "dsl/ops/linear.hpp"

namespace tessera {

/// Two numbers, down and across. One number stands for both.
struct DownAcross {
  std::int64_t down, across;

  constexpr DownAcross(int both) : down(both), across(both) {}
  constexpr DownAcross(std::int64_t d, std::int64_t a) : down(d), across(a) {}
};

/// How a convolution goes over an image: Convolution{.stride = 2, .padding = 1}. As the arguments of torch.nn.Conv2d.
struct Convolution {
  DownAcross stride = 1;
  DownAcross padding = 0;      ///< zeros on each side
  DownAcross dilation = 1;     ///< from one number of the kernel to the next
  DownAcross padding_end = 0;  ///< zeros below and on the right, besides those of padding: F.pad(x, (0, n, 0, n))
};

namespace detail {

/// A convolution along one axis, of `length` numbers by a kernel of `kernel`.
struct Sweep {
  std::int64_t length, kernel, stride, padding, dilation, padding_end;

  constexpr std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
  constexpr std::int64_t padded() const { return length + 2 * padding + padding_end; }
  /// floor((padded - dilation (kernel - 1) - 1) / stride) + 1
  constexpr std::int64_t windows() const { return (padded() - reach()) / stride + 1; }
};

constexpr Sweep sweep_down(const Shape& x, const Shape& weight, const Convolution& how) {
  return {x[2].value(), weight[2].value(), how.stride.down, how.padding.down, how.dilation.down, how.padding_end.down};
}
constexpr Sweep sweep_across(const Shape& x, const Shape& weight, const Convolution& how) {
  return {x[3].value(),       weight[3].value(),   how.stride.across,
          how.padding.across, how.dilation.across, how.padding_end.across};
}

constexpr void put_convolution(Text& t, const Shape& x, const Shape& weight) {
  t.put("conv2d of ");
  x.print(t);
  t.put(" by ");
  weight.print(t);
  t.put(": ");
}

constexpr Text conv2d_problem(const Shape& x, const Shape& weight, const Convolution& how) {
  Text t;
  if (x.rank != 4 || weight.rank != 4) {
    put_convolution(t, x, weight);
    t.put("it needs an image [B, C, height, width] and a weight [D, C, height, width]");
    if (x.rank == 3 && weight.rank == 4) t.put(" (did you mean rearrange<b (gh gw) d -> b d gh gw> of tokens?)");
    t.put(" [convolution-input]");
    return t;
  }
  if (!(x[1] == weight[1])) {
    put_convolution(t, x, weight);
    t.put("axis 1 of the image is ");
    x[1].print(t);
    t.put(", needs ");
    weight[1].print(t);
    const Shape channels_first{4, {x.dim[0], x.dim[3], x.dim[1], x.dim[2]}};
    Text idea;
    suggest(idea, x[1], weight[1], 1);
    if (x[3] == weight[1] && suggest_rearrange(t, " (", x, channels_first)) {
      t.put(")");
    } else if (says_what_was_meant(idea)) {
      t.put(idea.view());
    } else {
      const auto put_convolution2d = [&](const Dim& out) {
        const Dim* const of[] = {&x[1], &out, &weight[2], &weight[3]};
        for (int i = 0; i < 4; ++i) {
          t.put(i ? ", " : "Conv2d<");
          put_code(t, of[i]->shown);
        }
        t.put(">");
      };
      t.put(" (did you mean ");
      put_convolution2d(weight[0]);
      t.put(", or ");
      put_convolution2d(weight[1]);
      t.put(" before it?)");
    }
    t.put(" [convolution-input]");
    return t;
  }
  for (int axis : {2, 3})
    if (!x[axis].known() || !weight[axis].known()) {
      put_convolution(t, x, weight);
      t.put("axis ").put(std::int64_t{axis}).put(" has a size that is known only when the program runs [dim-unknown]");
      return t;
    }
  for (const DownAcross& least_one : {how.stride, how.dilation})
    if (least_one.down < 1 || least_one.across < 1 || how.padding.down < 0 || how.padding.across < 0 ||
        how.padding_end.down < 0 || how.padding_end.across < 0) {
      put_convolution(t, x, weight);
      t.put("stride and dilation are at least 1, padding at least 0 [convolution-options]");
      return t;
    }
  for (int axis : {2, 3}) {
    const Sweep sweep = axis == 2 ? sweep_down(x, weight, how) : sweep_across(x, weight, how);
    if (sweep.reach() <= sweep.padded()) continue;
    put_convolution(t, x, weight);
    t.put("the kernel reaches over ").put(sweep.reach()).put(axis == 2 ? " rows" : " columns");
    t.put(", and with padding there are ").put(sweep.padded());
    t.put("; a padding of ")
        .put((sweep.reach() - sweep.length - sweep.padding_end + 1) / 2)
        .put(" would do [convolution-size]");
    return t;
  }
  return t;
}

/// The dim of what a sweep gives: the axis itself where it stays as long, its quotient by the stride where that is
/// exact, else a number.
template <class Length, class Kernel, std::int64_t stride, std::int64_t windows>
constexpr auto swept() {
  constexpr auto exactly = [](const Dim& by) {
    const Division d = divide(Length::value, by);
    return d.result == Division::Result::exact && d.quotient.value() == windows;
  };
  if constexpr (windows == Length::value.value())
    return Length{};
  else if constexpr (Kernel::value.value() == stride && exactly(Kernel::value))
    return Quotient<Length, Kernel>{};
  else if constexpr (exactly(Dim::constant(stride)))
    return Quotient<Length, Constant<stride>>{};
  else
    return Constant<windows>{};
}

/// The windows of a sweep along axis `at` of x: [..., length, ...] -> [..., kernel, windows, ...].
inline graph::NodeId record_windows(graph::NodeId x, int at, const Sweep& sweep, const Dim& kernel,
                                    const Dim& windows) {
  graph::Builder& r = recorder();
  const std::vector<Dim> shape = r.shape(x);
  const auto axis = static_cast<std::size_t>(at);
  const bool tiles =
      sweep.padding == 0 && sweep.padding_end == 0 && sweep.dilation == 1 && sweep.stride == sweep.kernel;
  if (tiles && windows * kernel == shape[axis]) {  // each number in one window: the axis is split, and turned round
    graph::Rearrangement split;
    std::vector<Dim> to = shape;
    for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
      const int atom = static_cast<int>(split.atoms.size());
      if (i == at) {
        split.atoms.insert(split.atoms.end(), {windows, kernel});
        split.from.push_back({atom, atom + 1});
        split.to.insert(split.to.end(), {{atom + 1}, {atom}});
      } else {
        split.atoms.push_back(shape[static_cast<std::size_t>(i)]);
        split.from.push_back({atom});
        split.to.push_back({atom});
      }
    }
    to[axis] = windows;
    to.insert(to.begin() + at, kernel);
    return r.rearrange(x, std::move(split), std::move(to));
  }
  return r.unfold(x, at, kernel, windows, -sweep.padding, sweep.stride, sweep.dilation);
}

}  // namespace detail

/// Convolves images [B, C, height, width] with a weight [D, C, kernel height, kernel width] to [B, D, height', width'],
/// where height' = floor((height + 2 padding + padding_end - dilation (kernel - 1) - 1) / stride) + 1. An axis that
/// stays as long keeps its name, one that the stride divides is the quotient, any other is a number. Recorded as the
/// windows of rows, then of columns, and one einsum. Sentences: [convolution-input], [convolution-options],
/// [convolution-size], [dim-unknown]. PyTorch equivalent: torch.nn.functional.conv2d(x, weight, stride=...,
/// padding=..., dilation=...).
template <Convolution how = Convolution{}, AnyTensor X, AnyTensor W>
auto conv2d(const X& x, const W& weight) {
  if constexpr (poisoned<X, W>) {
    return Poison{};
  } else {
    constexpr auto problem = [] { return detail::conv2d_problem(X::shape, W::shape, how); };
    if constexpr (!fits<decltype(problem)>) {
      return Refusal<decltype(problem)>::poison();
    } else {
      using D = typename X::dims;
      using KH = typename W::dims::template at<2>;
      using KW = typename W::dims::template at<3>;
      constexpr detail::Sweep down = detail::sweep_down(X::shape, W::shape, how);
      constexpr detail::Sweep across = detail::sweep_across(X::shape, W::shape, how);
      using OH = decltype(detail::swept<typename D::template at<2>, KH, down.stride, down.windows()>());
      using OW = decltype(detail::swept<typename D::template at<3>, KW, across.stride, across.windows()>());
      const graph::NodeId rows = detail::record_windows(node_of(x), 2, down, KH::value, OH::value);
      const graph::NodeId all = detail::record_windows(rows, 4, across, KW::value, OW::value);
      using Windows = TensorOf<Dims<typename D::template at<0>, typename D::template at<1>, KH, OH, KW, OW>>;
      return einsum<"b c p y q x, d c p q -> b d y x">(Windows(all), weight);
    }
  }
}

/// A learned convolution without a bias. Key: weight [D, C, KH, KW], which starts uniform in +-1/sqrt(C*KH*KW) and
/// decays. Sentences: as conv2d.
/// PyTorch equivalent: torch.nn.Conv2d(C, D, (KH, KW), stride=..., padding=..., dilation=..., bias=False).
template <DimExpression auto C, DimExpression auto D, DimExpression auto KH, DimExpression auto KW,
          Convolution how = Convolution{}>
struct Conv2dWithoutBias : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(C * KH * KW)>>(); }

  Parameter<D, C, KH, KW> weight{with_decay(uniform(-bound(), bound()))};
  TESSERA_MEMBERS(Conv2dWithoutBias, weight)

  template <AnyTensor X>
  auto forward(const X& x) const {
    return conv2d<how>(x, weight);
  }
};

/// A learned convolution: Conv2d<C, D, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}>. Keys: weight [D, C, KH, KW],
/// bias [D]; both start uniform in +-1/sqrt(C*KH*KW), as PyTorch's do, and the weight decays. Sentences: as conv2d. For
/// patches that become tokens, PatchConvolution.
/// PyTorch equivalent: torch.nn.Conv2d(C, D, (KH, KW), stride=..., padding=..., dilation=...).
template <DimExpression auto C, DimExpression auto D, DimExpression auto KH, DimExpression auto KW,
          Convolution how = Convolution{}>
struct Conv2d : Module {
  static double bound() { return detail::fan_in_bound<std::remove_cv_t<decltype(C * KH * KW)>>(); }

  Parameter<D, C, KH, KW> weight{with_decay(uniform(-bound(), bound()))};
  Parameter<D> bias{uniform(-bound(), bound())};
  TESSERA_MEMBERS(Conv2d, weight, bias)

  template <AnyTensor X>
  auto forward(const X& x) const {
    auto y = conv2d<how>(x, weight);
    if constexpr (poisoned<decltype(y)>) {
      return Poison{};
    } else {
      using Y = decltype(y);
      graph::Builder& r = recorder();
      return Y(r.add(node_of(y), r.broadcast(node_of(bias), Y::shape.dims(), {1})));
    }
  }
};

}  // namespace tessera
