// Elementwise +, -, * and / of tensors, with the broadcasting of missing leading axes and no other.
#pragma once

#include <type_traits>
#include <vector>

#include "dsl/mismatch.hpp"
#include "dsl/tensor.hpp"

namespace tessera {

namespace detail {

/// The last `small.rank` axes of `large` are those of `small`.
constexpr bool ends_with(const Shape& large, const Shape& small) {
  if (small.rank > large.rank) return false;
  for (int i = 1; i <= small.rank; ++i)
    if (!large[large.rank - i].lines_up_with(small[small.rank - i])) return false;
  return true;
}

constexpr Text arithmetic_problem(const char* op, const char* sign, const Shape& a, const Shape& b) {
  Text t;
  if (ends_with(a, b) || ends_with(b, a)) return t;
  t.put(op).put(" ");
  a.print(t);
  t.put(" ").put(sign).put(" ");
  b.print(t);
  t.put(": ");
  // Axes are matched from the last one back; the first that disagrees is named as the longer shape counts it.
  const bool a_is_longer = a.rank >= b.rank;
  const Shape& large = a_is_longer ? a : b;
  const Shape& small = a_is_longer ? b : a;
  int from_end = 1;
  while (large[large.rank - from_end].lines_up_with(small[small.rank - from_end])) ++from_end;
  const Dim& left = a[a.rank - from_end];
  const Dim& right = b[b.rank - from_end];
  t.put("axis ").put(std::int64_t{large.rank} - from_end).put(" is ");
  left.print(t);
  t.put(" on the left and ");
  right.print(t);
  t.put(" on the right");
  // What the smaller one would have to be: the last axes of the larger one, as many as it has or fewer.
  bool rearranged = small.rank < large.rank && suggest_rearrange(t, " (", small, large);
  for (int rank = small.rank; rank > 0 && !rearranged; --rank) {
    Shape end;
    for (int i = large.rank - rank; i < large.rank; ++i) end.dim[end.rank++] = large.dim[i];
    rearranged = suggest_rearrange(t, " (", small, end);
  }
  if (rearranged) {
    t.put(")");
  } else if (suggest_repeat(t, small, large)) {
    if (large.rank == small.rank + 1) suggest_pooling_instead(t, small, large);
  } else if (!suggest_map_size(t, a, b)) {
    const Dim &is = small[small.rank - from_end], &needs = large[large.rank - from_end], one = Dim::constant(1);
    Dim rest;
    Shape end;
    for (int i = large.rank - small.rank; i < large.rank; ++i) end.dim[end.rank++] = large.dim[i];
    const auto put_table = [&] {
      end.print(t);
      t.put(a_is_longer ? " on the right?)" : " on the left?)");
    };
    Text idea;
    suggest(idea, is, needs, small.rank - from_end, from_end == 1 && small.rank == large.rank ? "a " : "");
    // What is the same for each image, as positions are.
    bool table = !large[0].known();
    for (int i = 0; i < small.rank; ++i) table &= small[i].known();
    if (table && is + one == needs) {
      t.put(" (one short: was the class token forgotten? did you mean ");
      put_table();
    } else if (table && needs + one == is) {
      t.put(a_is_longer ? " (one short on the left" : " (one short on the right");
      t.put(": was the class token forgotten? did you mean concat<").put(std::int64_t{large.rank} - from_end);
      t.put(">(token, x) there?)");
    } else if (table && lacks_one_part(is, needs, rest)) {
      t.put(" (short of ");
      rest.print(t);
      t.put(": did you mean to add it before the concat, or ");
      put_table();
    } else if (small.rank < large.rank && (idea.size == 0 || idea.view().find(" := ") != idea.view().npos)) {
      t.put(" (did you mean ");
      put_table();
    } else {
      t.put(idea.view());
    }
  }
  t.put(" [elementwise-shape]");
  return t;
}

/// What an elementwise operation is, what it is called and how it is written.
struct Add {
  static constexpr graph::Op op = graph::Op::add;
  static constexpr const char *name = "add", *sign = "+";
};
struct Subtract {
  static constexpr graph::Op op = graph::Op::subtract;
  static constexpr const char *name = "subtract", *sign = "-";
};
struct Multiply {
  static constexpr graph::Op op = graph::Op::multiply;
  static constexpr const char *name = "multiply", *sign = "*";
};
struct Divide {
  static constexpr graph::Op op = graph::Op::divide;
  static constexpr const char *name = "divide", *sign = "/";
};

/// The node of x with the leading axes of `to` that it lacks.
template <class X>
graph::NodeId widened(const X& x, const Shape& to) {
  if (X::shape.rank == to.rank) return node_of(x);
  std::vector<int> axes;
  for (int i = 0; i < X::shape.rank; ++i) axes.push_back(to.rank - X::shape.rank + i);
  return recorder().broadcast(node_of(x), to.dims(), axes);
}

template <class Kind, class A, class B>
struct ArithmeticProblem {
  constexpr Text operator()() const {
    if constexpr (poisoned<A, B>)
      return {};
    else
      return arithmetic_problem(Kind::name, Kind::sign, A::shape, B::shape);
  }
};

/// Each operator refuses shapes that do not fit itself, before it calls this: a call in between would be one more line
/// of types in what GCC prints of a mistake.
template <class Kind, class A, class B>
auto arithmetic(const A& a, const B& b) {
  static_assert(fits<ArithmeticProblem<Kind, A, B>>, "the operator has to refuse these shapes");
  if constexpr (poisoned<A, B>) {
    return Poison{};
  } else {
    using Wide = std::conditional_t<(A::shape.rank >= B::shape.rank), A, B>;
    const graph::NodeId left = widened(a, Wide::shape), right = widened(b, Wide::shape);
    return TensorOf<typename Wide::dims>(recorder().binary(Kind::op, left, right));
  }
}

}  // namespace detail

/// a + b, elementwise. Shapes are equal, or one is the end of the other: [B, N, D] + [N, D] repeats the second for
/// every B. Nothing else is stretched. Sentence: [elementwise-shape]. PyTorch equivalent: a + b.
template <AnyTensor A, AnyTensor B>
auto operator+(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Add, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Add>(a, b);
  else
    return Refusal<Problem>::poison();
}

/// a - b, elementwise; shapes as for +.
/// PyTorch equivalent: a - b.
template <AnyTensor A, AnyTensor B>
auto operator-(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Subtract, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Subtract>(a, b);
  else
    return Refusal<Problem>::poison();
}

/// a * b, elementwise; shapes as for +.
/// PyTorch equivalent: a * b.
template <AnyTensor A, AnyTensor B>
auto operator*(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Multiply, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Multiply>(a, b);
  else
    return Refusal<Problem>::poison();
}

/// a / b, elementwise; shapes as for +.
/// PyTorch equivalent: a / b.
template <AnyTensor A, AnyTensor B>
auto operator/(const A& a, const B& b) {
  using Problem = detail::ArithmeticProblem<detail::Divide, A, B>;
  if constexpr (fits<Problem>)
    return detail::arithmetic<detail::Divide>(a, b);
  else
    return Refusal<Problem>::poison();
}

}  // namespace tessera
