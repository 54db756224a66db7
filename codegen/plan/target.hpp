// The instruction sets that a model is planned and emitted for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/isa.hpp"

namespace tessera::codegen {

/// An instruction set, and the tiles of GEMMs that were measured on it (tuned.hpp).
struct Target : Isa {
  explicit Target(const Isa& isa) : Isa(isa) {}
  std::map<std::int64_t, int> tuned_vectors;  ///< by a product's columns: the best of `columns`
  /// By a product's rows and the vectors of its tiles: their rows.
  std::map<std::pair<std::int64_t, int>, std::int64_t> tuned_rows;
};

/// Those that a model of this precision is emitted for unless others are asked for.
std::vector<Target> targets_of(Precision precision);

/// Those of these names, in the order of the table, whatever theirs is. Throws Error with one sentence for a name that
/// is not in the table, is there twice or is not emitted for this precision, and where scalar is missing.
std::vector<Target> targets_named(const std::vector<std::string>& names, Precision precision);

}  // namespace tessera::codegen
