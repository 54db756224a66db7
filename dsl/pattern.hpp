// einops' patterns, parsed at compile time: "b n (s h k) -> s b h n k", "b i k, b j k -> b i j".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dsl/text.hpp"

namespace tessera {

/// One side of a pattern, or one operand of an einsum: groups of names. (h w) is one group of two, w a group of one,
/// and 1 or () a group of none.
struct PatternSide {
  static constexpr int capacity = 16;
  int groups = 0;
  int first[capacity]{};  ///< where a group's names start in `name`
  int count[capacity]{};
  bool bracket[capacity]{};  ///< whether the group was written in brackets
  int names = 0;
  int name[capacity]{};      ///< numbers of names, in Pattern::name
  int position[capacity]{};  ///< where each stands in the pattern, counted from 1
  int dots = 0;              ///< where ... stands, counted from 1; 0: nowhere
  int dots_group = 0;        ///< in which group

  /// Where the name stands in `name`, or -1.
  constexpr int find(int wanted) const {
    for (int i = 0; i < names; ++i)
      if (name[i] == wanted) return i;
    return -1;
  }
  /// The group that holds nothing but the name, or -1.
  constexpr int alone(int wanted) const {
    for (int g = 0; g < groups; ++g)
      if (count[g] == 1 && name[first[g]] == wanted) return g;
    return -1;
  }
};

/// A parsed pattern. `problem` says what is wrong with it, at the position `at`, counted from 1.
struct Pattern {
  static constexpr int capacity = 24;
  std::string_view text;
  int names = 0;
  std::string_view name[capacity]{};
  std::int64_t
      number[capacity]{};  ///< of a name that is a number (an anonymous axis, as the 2 in "h -> (h 2)"); else 0
  int operands = 0;
  PatternSide operand[2]{};
  PatternSide result{};
  int at = 0;
  const char* problem = nullptr;

  constexpr int find(std::string_view wanted) const {
    for (int i = 0; i < names; ++i)
      if (name[i] == wanted && number[i] == 0) return i;
    return -1;
  }
};

namespace detail {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The names that ... stands for, outermost first.
inline constexpr std::string_view dots_names[PatternSide::capacity] = {
    "...0", "...1", "...2",  "...3",  "...4",  "...5",  "...6",  "...7",
    "...8", "...9", "...10", "...11", "...12", "...13", "...14", "...15"};

/// Reads a pattern from left to right; stops at the first mistake.
class PatternParser {
 public:
  constexpr PatternParser(std::string_view text, int dots) : dots_(dots) { out_.text = text; }

  constexpr Pattern parse() {
    while (true) {
      if (out_.operands == 2) return fail(i_, "a pattern has at most two operands");
      if (!side(out_.operand[out_.operands++])) return out_;
      if (!(i_ < size() && out_.text[here()] == ',')) break;
      ++i_;
    }
    if (i_ >= size()) return fail(i_, "-> is missing");
    i_ += 2;
    if (!side(out_.result)) return out_;
    if (i_ < size())
      return fail(i_, out_.text[here()] == ',' ? "the right side has one shape, without commas" : "a second ->");
    if (out_.result.dots && !out_.operand[0].dots && !out_.operand[1].dots)
      return fail(out_.result.dots - 1, "... stands on the right only");
    return out_;
  }

 private:
  constexpr int size() const { return static_cast<int>(out_.text.size()); }
  constexpr std::size_t here() const { return static_cast<std::size_t>(i_); }

  constexpr Pattern fail(int at, const char* problem) {
    out_.at = at + 1;
    out_.problem = problem;
    return out_;
  }

  constexpr bool append(PatternSide& s, int name, int at, bool open) {
    if (s.names == PatternSide::capacity || s.groups == PatternSide::capacity) {
      fail(at, "more than 16 names on one side");
      return false;
    }
    s.name[s.names] = name;
    s.position[s.names] = at + 1;
    if (open) {
      ++s.count[s.groups];
    } else {
      s.first[s.groups] = s.names;
      s.count[s.groups++] = 1;
    }
    ++s.names;
    return true;
  }

  /// Reads up to the end, a comma or an arrow.
  constexpr bool side(PatternSide& s) {
    int open = -1;
    while (i_ < size()) {
      const char c = out_.text[here()];
      if (c == ' ') {
        ++i_;
      } else if (c == ',') {
        break;
      } else if (c == '-') {
        if (i_ + 1 < size() && out_.text[here() + 1] == '>') break;
        return fail(i_, "a lone -, where -> may be meant"), false;
      } else if (c == '(') {
        if (open >= 0) return fail(i_, "brackets within brackets"), false;
        if (s.groups == PatternSide::capacity) return fail(i_, "more than 16 axes on one side"), false;
        open = i_++;
        s.first[s.groups] = s.names;
        s.count[s.groups] = 0;
        s.bracket[s.groups] = true;
      } else if (c == ')') {
        if (open < 0) return fail(i_, "this bracket was never opened"), false;
        open = -1;
        ++s.groups;
        ++i_;
      } else if (c == '.') {
        if (!dots(s, open >= 0)) return false;
      } else if (is_letter(c) || is_digit(c)) {
        if (!word(s, open >= 0)) return false;
      } else {
        return fail(i_, "a character that no pattern has"), false;
      }
    }
    if (open >= 0) return fail(open, "this bracket is never closed"), false;
    return true;
  }

  constexpr bool dots(PatternSide& s, bool open) {
    const int at = i_;
    if (out_.text.substr(here(), 3) != "...") return fail(at, "dots only stand as three: ..."), false;
    if (s.dots) return fail(at, "a second ... on one side"), false;
    if (open && &s != &out_.result) return fail(at, "... in brackets on the left"), false;
    s.dots = at + 1;
    s.dots_group = s.groups;
    for (int d = 0; d < dots_; ++d)
      if (!append(s, number_of(dots_names[d]), at, open)) return false;
    i_ += 3;
    return true;
  }

  constexpr int number_of(std::string_view name, std::int64_t value = 0) {
    if (const int known = out_.find(name); known >= 0 && value == 0) return known;
    out_.name[out_.names] = name;
    out_.number[out_.names] = value;
    return out_.names++;
  }

  constexpr bool word(PatternSide& s, bool open) {
    const int at = i_;
    while (i_ < size() && (is_letter(out_.text[here()]) || is_digit(out_.text[here()]))) ++i_;
    const std::string_view word = out_.text.substr(static_cast<std::size_t>(at), here() - static_cast<std::size_t>(at));
    std::int64_t value = 0;
    if (is_digit(word[0])) {
      for (const char c : word) {
        if (!is_digit(c)) return fail(at, "a name starts with a letter"), false;
        value = value * 10 + (c - '0');
      }
      if (value == 0) return fail(at, "an axis of size 0"), false;
      if (value == 1) {
        if (open) return true;
        if (s.groups == PatternSide::capacity) return fail(at, "more than 16 axes on one side"), false;
        s.first[s.groups] = s.names;
        s.count[s.groups++] = 0;
        return true;
      }
    } else if (word.front() == '_' || word.back() == '_') {
      return fail(at, "a name that starts or ends with _"), false;
    } else if (const int known = out_.find(word); known >= 0 && s.find(known) >= 0) {
      return fail(at, "this name stands twice on one side"), false;
    }
    if (out_.names == Pattern::capacity) return fail(at, "more than 24 names"), false;
    return append(s, number_of(word, value), at, open);
  }

  Pattern out_{};
  int i_ = 0;
  int dots_;
};

}  // namespace detail

/// Reads a pattern; `dots` is how many axes ... stands for.
constexpr Pattern parse_pattern(std::string_view text, int dots = 0) {
  return detail::PatternParser(text, dots).parse();
}

/// Reads a pattern whose first operand has `rank` axes, which says how many of them ... stands for.
constexpr Pattern parse_pattern_for(std::string_view text, int rank) {
  const Pattern p = parse_pattern(text);
  const int dots = rank - p.operand[0].groups;
  return p.operand[0].dots && dots > 0 ? parse_pattern(text, dots) : p;
}

/// "rearrange<b n (h k -> b h n k> at 5: "
constexpr void put_pattern(Text& t, const char* op, std::string_view pattern, int at) {
  t.put(op).put("<").put(pattern).put(">");
  if (at > 0) t.put(" at ").put(std::int64_t{at});
  t.put(": ");
}

/// The sentence for a malformed pattern; nothing for a good one.
constexpr void explain_pattern(Text& t, const char* op, const Pattern& p) {
  if (!p.problem) return;
  put_pattern(t, op, p.text, p.at);
  t.put(p.problem).put(" [pattern-syntax]");
}

}  // namespace tessera
