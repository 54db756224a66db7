// "Did you mean": the word that a mistyped one is nearest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// How many letters have to be inserted, left out, replaced or swapped with their neighbour to make `b` of `a`:
/// the optimal string alignment distance (Damerau 1964).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known word that is nearest to `word`, or that alone begins with it; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace tessera::runtime
