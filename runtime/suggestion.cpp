#include "runtime/suggestion.hpp"

#include <algorithm>

namespace tessera::runtime {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t longest = 64;  // of what a person mistypes
  if (word.empty() || word.size() > longest) return "";
  const std::string* found = nullptr;
  std::size_t least = 0;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (!found || distance < least) found = &candidate, least = distance;
  }
  const auto letters = [](std::string_view of) { return of.size() - std::min(of.find_first_not_of('-'), of.size()); };
  if (found && least <= std::max<std::size_t>(1, letters(word) / 3)) return *found;
  const auto begun = [&](const std::string& candidate) { return letters(word) >= 2 && candidate.starts_with(word); };
  return std::ranges::count_if(known, begun) == 1 ? *std::ranges::find_if(known, begun) : "";
}

}  // namespace tessera::runtime
