// Split-K over the batch: partials of its chunks in scratch memory, which a second function reduces in their order.
#pragma once

#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// The axis along which partials are contiguous: the vector axis where it is an outer one, else the last outer.
int partial_vector(const Values& v);
/// Where the partial of a chunk lies at v's place, for the step that is the reduction of that number.
tree::Expr partial_index(const Values& v, int reduction, tree::Expr chunk);

}  // namespace tessera::codegen::cpu
