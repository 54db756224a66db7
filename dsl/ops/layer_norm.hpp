// LayerNorm: zero mean and unit variance over the last axes, then a learned scale and shift.
#pragma once

#include <type_traits>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/module.hpp"

namespace tessera {

namespace detail {

/// What a norm over the last axes calls itself in its sentence.
struct NormNames {
  const char *words, *module, *id;
};

constexpr Text norm_problem(const NormNames& names, const Shape& x, const Shape& over) {
  Text t;
  bool same = x.rank >= over.rank;
  for (int i = 1; same && i <= over.rank; ++i) same = x[x.rank - i].lines_up_with(over[over.rank - i]);
  if (same) return t;
  t.put(names.words).put(" over ");
  over.print(t);
  t.put(" cannot take ");
  x.print(t);
  if (x.rank < over.rank) {
    t.put(": it has ").put(std::int64_t{x.rank}).put(x.rank == 1 ? " axis" : " axes");
    t.put(", needs at least ").put(std::int64_t{over.rank});
  } else {
    int i = 1;
    while (x[x.rank - i].lines_up_with(over[over.rank - i])) ++i;
    t.put(": axis ").put(std::int64_t{x.rank} - i).put(" is ");
    x[x.rank - i].print(t);
    t.put(", needs ");
    over[over.rank - i].print(t);
    int elsewhere = 0;
    while (elsewhere < x.rank - 1 && !(x[elsewhere] == over.back())) ++elsewhere;
    Shape moved;  // with that axis last, as channels that come first have to be
    for (int k = 0; k < x.rank; ++k)
      if (k != elsewhere) moved.dim[moved.rank++] = x.dim[k];
    if (elsewhere < x.rank) moved.dim[moved.rank++] = x.dim[elsewhere];
    const bool channels_first = over.rank == 1 && x.rank > 3;
    if (i == 1 && elsewhere < x.rank - 1 && channels_first &&
        suggest_rearrange(t, " (it normalises the last axes: ", x, moved)) {
      t.put(")");
    } else if (i == 1 && (elsewhere < x.rank - 1 || (over.rank == 1 && is_name(x.back())))) {
      t.put(" (it normalises the last axes: did you mean ").put(names.module).put("<");
      x.back().shown.print(t);
      t.put(">?)");
    } else {
      suggest(t, x[x.rank - i], over[over.rank - i], x.rank - i);
    }
  }
  t.put(" ").put(names.id);
  return t;
}

}  // namespace detail

/// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last axes, which have to be Ds; the variance is the
/// biased one (Ba, Kiros, Hinton 2016). Keys: weight [Ds...], bias [Ds...], which start at one and zero. Sentence:
/// [layer-norm-axis]. PyTorch equivalent: torch.nn.LayerNorm((Ds...), eps=epsilon).
template <auto... Ds>
struct LayerNorm : Module {
  static_assert(sizeof...(Ds) > 0, "LayerNorm needs the axes it normalises over");

  double epsilon;
  Parameter<Ds...> weight{constant(1)};
  Parameter<Ds...> bias{constant(0)};
  TESSERA_MEMBERS(LayerNorm, weight, bias)

  explicit LayerNorm(double eps = 1e-5) : epsilon(eps) {}

  template <AnyTensor X>
  auto forward(const X& x) const {
    using Over = typename Tensor<Ds...>::dims;
    if constexpr (Over::poisoned) {
      return Poison{};
    } else {
      constexpr auto problem = [] {
        return detail::norm_problem({"layer norm", "LayerNorm", "[layer-norm-axis]"}, X::shape, Over::shape);
      };
      if constexpr (!fits<decltype(problem)>) {
        return Refusal<decltype(problem)>::poison();
      } else {
        std::vector<int> axes;
        for (int i = X::shape.rank - Over::rank; i < X::shape.rank; ++i) axes.push_back(i);
        return TensorOf<typename X::dims>(
            recorder().layer_norm(node_of(x), node_of(weight), node_of(bias), axes, epsilon));
      }
    }
  }
};

}  // namespace tessera
