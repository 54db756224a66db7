// Attention and its backward pass, by blocks of a head's queries.
#pragma once

#include "codegen/cpu/kernel.hpp"

namespace tessera::codegen::cpu {

/// A kernel that is one of these, as a loop over blocks of queries. Each kernel in it becomes a function of one block,
/// which `put` writes; scores lie on the stack. `in_team`: the threads of a team share the blocks out, or the heads of
/// a backward pass, whose blocks add to the same sums.
Emitted attention(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put);

}  // namespace tessera::codegen::cpu
