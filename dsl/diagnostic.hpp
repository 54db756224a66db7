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

/// The size is a parameter of its own, so that compilers print Sentence<162> and not how it is found.
template <class Problem, int size = problem_text<Problem>.size>
inline constexpr Sentence<size> problem_sentence{problem_text<Problem>};

// Each compiler prints a text that is a template argument whole in a place of its own (seen on GCC 12, Clang 16 to 19).
// What fails stands where the rest stays usable: an operation that is refused still returns, also in a constexpr
// function.
#if defined(__cpp_static_assert) && __cpp_static_assert >= 202306L
// C++26: the message of a static_assert may be computed.
template <auto sentence>
struct ShapeError {
  static constexpr Poison poison() {
    constexpr bool shapes_fit = sentence.size() == 0;
    static_assert(shapes_fit, sentence);
    return {};
  }
};
#elif defined(__clang__)
// Clang cuts it after 34 characters, but not in the note that says which concept it does not satisfy.
template <auto sentence>
concept shapes_fit = false;

template <auto sentence>
struct ShapeError {
  static constexpr Poison poison() {
    static_assert(shapes_fit<sentence>, "the note below says what does not fit");
    return {};
  }
};
#else
// GCC prints it in the error line where that names a type.
template <auto sentence>
struct Shapes {};

template <auto sentence>
struct ShapeError {
  using error = typename Shapes<sentence>::fit;
  static constexpr Poison poison() { return {}; }
};
#endif

/// Refusal<Problem>::poison() stops the compilation with Problem's sentence. To be named on the failing branch only.
template <class Problem>
using Refusal = ShapeError<problem_sentence<Problem>>;

/// What a model was asked to be, or, where Problem has something to say, what can be in its place: members that are
/// made of it then make no errors of their own.
template <class Problem, auto asked, decltype(asked) instead>
inline constexpr auto checked = [] {
  if constexpr (!fits<Problem>) {
    Refusal<Problem>::poison();
    return instead;
  } else {
    return asked;
  }
}();

}  // namespace tessera
