// The name in C++ of a model that another library calls in_words_like_this.
#pragma once

#include <cctype>
#include <string>

namespace tessera::test {

inline std::string camel(const std::string& words) {
  std::string name;
  bool starts = true;
  for (const char letter : words) {
    if (letter != '_') name += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    starts = letter == '_';
  }
  return name;
}

}  // namespace tessera::test
