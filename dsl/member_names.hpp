// The names of a module's members, read from its source: C++20 has none, and an error has to say which one is meant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::detail {

constexpr bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Where `word` stands in `text` as a word, from `at` on; npos if nowhere.
constexpr std::size_t find_word(std::string_view text, std::string_view word, std::size_t at = 0) {
  for (; (at = text.find(word, at)) != text.npos; ++at)
    if ((at == 0 || !in_word(text[at - 1])) && (at + word.size() == text.size() || !in_word(text[at + word.size()])))
      break;
  return at;
}

/// The names that a statement declares: of "Linear<D, M> fc1, fc2{1}" fc1 and fc2.
inline void put_declared(std::string_view statement, std::vector<std::string>& names) {
  int depth = 0;
  std::size_t word = 0, size = 0;
  bool named = false;  // an initializer follows
  for (std::size_t i = 0; i <= statement.size(); ++i) {
    const char c = i < statement.size() ? statement[i] : ',';
    if (depth == 0 && c == ',') {
      if (size) names.emplace_back(statement.substr(word, size));
      size = 0;
      named = false;
    } else if (depth == 0 && (c == '{' || c == '=' || c == '[')) {
      named = true;
    } else if (depth == 0 && !named && in_word(c)) {
      if (i == 0 || !in_word(statement[i - 1])) word = i;
      size = i + 1 - word;
    }
    depth += c == '<' || c == '{' || c == '(' || c == '[';
    depth -= c == '>' || c == '}' || c == ')' || c == ']';
  }
}

/// The members that struct `self` declares, in their order: of the last such struct that begins before `end` of `text`.
/// Good for what modules look like; who writes them by macros gets nothing.
inline std::vector<std::string> member_names(std::string_view text, std::string_view self, std::size_t end) {
  std::vector<std::string> names;
  std::size_t at = text.npos;
  for (std::size_t i = 0; (i = find_word(text, "struct", i)) < end; ++i)
    if (find_word(text, self, i) == i + 7) at = i;
  int depth = 0;
  while (at < text.size() && (text[at] != '{' || depth)) {  // Vit<{...}> may be its base
    depth += (text[at] == '<') - (text[at] == '>');
    ++at;
  }
  if (at >= text.size()) return names;
  std::string statement;
  bool calls = false;  // it has parentheses, as functions have
  for (++at, depth = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '/' && text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    depth += c == '{' || c == '(';
    depth -= c == '}' || c == ')';
    if (depth < 0) return names;
    calls |= c == '(' && depth == 1 && statement.find('=') == statement.npos;
    if ((c == ' ' || c == '\n') && statement.empty()) continue;
    if (c != ';' || depth) statement += c;
    const bool body = c == '}' && (calls || statement.front() == '{'),
               macro = c == ')' && statement.starts_with("TESSERA_");
    if (depth || (c != ';' && !body && !macro)) continue;
    bool data = !calls && find_word(statement, "operator") == statement.npos;
    for (const char* other : {"static", "using", "template", "friend", "struct", "enum"})
      data &= !statement.starts_with(other);
    if (data) put_declared(statement, names);
    statement.clear();
    calls = false;
  }
  return names;
}

/// "forgotten", or "a or b": what struct `self` of a file declares between the member `before` (null: the first) and
/// the next of those listed ("norm, mlp"); empty where the file cannot be read any more. Its TESSERA_MEMBERS is on
/// `line`.
inline std::string unlisted_names(const char* file, int line, const char* self, const char* listed,
                                  const char* before) {
  std::string text, found;
  std::FILE* source = std::fopen(file, "rb");
  if (!source) return found;
  std::size_t end = 0;
  for (int c; (c = std::getc(source)) != EOF; text += static_cast<char>(c))
    if (c == '\n' && --line >= 0) end = text.size();
  std::fclose(source);
  bool on = !before;
  for (const std::string& name : member_names(text, self, end)) {
    const bool known = find_word(listed, name) != std::string_view::npos;
    if (on && known) break;
    if (on) found += (found.empty() ? "" : " or ") + name;
    on |= before && name == before;
  }
  return found;
}

}  // namespace tessera::detail
