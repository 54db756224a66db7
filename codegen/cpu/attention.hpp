// Attention: scores, softmax and what it weighs, by blocks of a head's queries.
#pragma once

#include "codegen/cpu/kernel.hpp"

namespace tessera::codegen::cpu {

/// A kernel that is made of those three, as a loop over blocks of queries. Each of the three becomes a function of one
/// block, which `put` writes; their scores lie on the stack. `in_team`: the threads of a team share the blocks out.
Emitted attention(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put);

}  // namespace tessera::codegen::cpu
