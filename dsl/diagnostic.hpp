// How a mistake becomes one sentence: the text is built at compile time and is the compiler's error.
#pragma once

#include <cstddef>

#include "dsl/text.hpp"

namespace tessera {

/// A text of exactly N characters as a template argument, which is how a compiler can be made to print it.
template <int N>
struct Sentence {
  char text[N + 1]{};

  constexpr explicit Sentence(const Text& from) {
    for (int i = 0; i < N; ++i) text[i] = from.chars[i];
  }
  constexpr std::size_t size() const { return N; }
  constexpr const char* data() const { return text; }
};

/// What a refused operation returns: every operation, module and conversion takes it and passes it on without a
/// word, so that one mistake is one error.
struct Poison {};

/// A Problem is a default-constructible constexpr function of no arguments: what is wrong, or nothing.
template <class Problem>
inline constexpr Text problem_text = Problem{}();

/// Whether Problem has nothing to say.
template <class Problem>
inline constexpr bool fits = problem_text<Problem>.size == 0;

template <class Problem>
inline constexpr Sentence<problem_text<Problem>.size> problem_sentence{problem_text<Problem>};

// Measured on GCC 12.2 and clang 19: `refuse` is instantiated on the failing branch only, and is the only place that
// fails. A static_assert with our sentence needs C++26. Before it, a call of a deleted function puts the sentence into
// the error line itself (a static_assert would leave it in a note); it stands in a class, because a constexpr function
// that names it could no longer be called, which would be a second error.
#if defined(__cpp_static_assert) && __cpp_static_assert >= 202306L
template <class Problem>
constexpr Poison refuse() {
  constexpr bool shapes_fit = fits<Problem>;
  static_assert(shapes_fit, problem_sentence<Problem>);
  return {};
}
#else
template <auto sentence>
int shape_error() = delete;

template <class Problem>
struct Refusal {
  using type = decltype(shape_error<problem_sentence<Problem> >());
};

/// Stops the compilation with Problem's sentence.
template <class Problem>
constexpr Poison refuse() {
  (void)sizeof(Refusal<Problem>);
  return {};
}
#endif

}  // namespace tessera
