// What a reducing step does with an accumulator.
#pragma once

#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// What an accumulator begins with: zero, or minus infinity.
tree::Expr identity(const Step& s);
/// Accumulator and value, added up or the greater of both.
tree::Expr accumulate(const Step& s, tree::Expr sum, tree::Expr value);
/// The same with the step's value at v's place; a multiplication becomes a fused multiply-add. `across`: the step
/// reduces along the lanes, so that in a vector with fewer lanes the others get what changes nothing.
tree::Expr accumulate(Values& v, const Step& s, tree::Block& b, tree::Expr sum, bool across);

/// Accumulate (beta = 1): the sums begin with what earlier microbatches, or blocks, have left where they are stored.
/// `first`: of the images, or queries, that are summed now; of the first ones it is 0.
void add_to_earlier(tree::Block& b, const char* first, tree::Block sums);
/// How many images a sum over the batch takes up in one call.
tree::Expr images(const Kernel& kernel);

}  // namespace tessera::codegen::cpu
