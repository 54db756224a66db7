// A text built at compile time (and usable at run time): what every sentence and every printed shape is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

/// A string literal as a template argument: axis<"D", 192>.
template <std::size_t N>
struct fixed_string {
  char data[N]{};
  constexpr fixed_string(const char (&text)[N]) {
    for (std::size_t i = 0; i < N; ++i) data[i] = text[i];
  }
  constexpr std::string_view view() const { return {data, N - 1}; }
};

/// Letters, digits and underscores, a letter first, at most 63: what may reach emitted text as a name. As such it needs
/// no escape in any context: identifier, comment, string literal, file name.
constexpr bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name.empty() || name.size() > 63 || !letter(name[0])) return false;
  for (const char c : name)
    if (!letter(c) && (c < '0' || c > '9') && c != '_') return false;
  return true;
}

/// A growing text of bounded length; what does not fit is cut, never written past the end.
struct Text {
  static constexpr int capacity = 600;
  char chars[capacity + 1]{};
  int size = 0;

  constexpr Text& put(std::string_view text) {
    for (char c : text)
      if (size < capacity) chars[size++] = c;
    return *this;
  }
  constexpr Text& put(std::int64_t number) {
    if (number < 0) put("-");
    std::uint64_t rest = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    char digits[20]{};
    int count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    while (count) put(std::string_view(&digits[--count], 1));
    return *this;
  }
  constexpr std::string_view view() const { return {chars, static_cast<std::size_t>(size)}; }
};

}  // namespace tessera
