// Loops over a kernel's axes: whole axes, parts of them, and the vector axis with its tail.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// From where to where an axis runs, where that is a part of it or is known only when the program runs.
struct Range {
  tree::Expr first, limit;
  bool whole_vectors = false;  ///< of an axis of known extent: begins and ends with whole vectors, or with the axis
};
/// By axis; one that is not there runs over all of its points.
using LoopBounds = std::map<int, Range>;

/// Puts the innermost statements into a block; `way`: which of several interleaved accumulators they reduce into.
using Leaf = std::function<void(tree::Block&)>;
using InterleavedLeaf = std::function<void(tree::Block&, const tree::Expr& way)>;

/// Loops over `axes`, the first one outermost, around what `leaf` makes. The vector axis goes in steps of the lanes,
/// then comes its tail: leaf is called for each copy of the innermost statements, with v's place and tail set.
tree::Block nest(Values& v, const std::vector<int>& axes, const LoopBounds& bounds, const Leaf& leaf);
/// The same, but that the vectors of the vector axis, which is the innermost one, take turns among `ways` accumulators.
tree::Block nest(Values& v, const std::vector<int>& axes, const LoopBounds& bounds, int ways,
                 const InterleavedLeaf& leaf);

/// One block after the other, each in a scope of its own where names could meet.
tree::Block join(std::vector<tree::Block> pieces);

}  // namespace tessera::codegen::cpu
