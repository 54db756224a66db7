// chunk: a tensor cut into equal parts.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "dsl/axis_ref.hpp"
#include "dsl/division.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

/// Cuts an axis into `parts` equal parts: chunk<2>(x, H) makes [B, N, D] into H tensors [B, N, K], where D := H*K.
/// Sentences: [axis-index], [axis-name], [dim-division], [dim-factor].
/// PyTorch equivalent: x.chunk(parts, dim=axis).
template <AxisRef axis, AnyTensor X, DimExpression Parts>
auto chunk(const X& x, Parts) {
  constexpr std::size_t count = static_cast<std::size_t>(count_of<Parts{}>());
  if constexpr (poisoned<X> || axis.poisoned || Parts::poisoned) {
    return std::array<Poison, count>{};
  } else {
    constexpr int at = axis_index(axis, X::shape);
    constexpr auto problem = [] {
      Text t;
      explain_axis(t, "chunk", axis, X::shape);
      if (t.size) return t;
      const Division division = divide(X::shape[at], Parts::value);
      if (division.result == Division::Result::exact) return t;
      t.put("chunk<");
      axis.print(t);
      t.put("> of ");
      X::shape.print(t);
      t.put(" into ");
      Parts::value.print(t);
      t.put(" parts: ");
      int other = -1, fitting = 0;  // the one axis behind the batch that is so many equal parts
      for (int i = 1; i < X::shape.rank; ++i)
        if (divide(X::shape[i], Parts::value).result == Division::Result::exact) {
          other = i;
          ++fitting;
        }
      if (fitting == 1) {
        X::shape[at].print(t);
        t.put(" is not, and ");
        X::shape[other].print(t);
        t.put(" is (did you mean chunk<").put(std::int64_t{other}).put(">?) [dim-division]");
      } else {
        division.explain(t, X::shape[at], Parts::value);
      }
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return std::array<Poison, count>{};
    } else {
      using Part = Quotient<typename X::dims::template at<at>, Parts>;
      using Result = TensorOf<replace_axis<typename X::dims, at, Part>>;
      std::array<Result, count> parts;
      const std::int64_t length = Part::value.value();
      for (std::size_t i = 0; i < count; ++i)
        parts[i] = Result(recorder().slice(node_of(x), at, static_cast<std::int64_t>(i) * length, Part::value));
      return parts;
    }
  }
}

}  // namespace tessera
