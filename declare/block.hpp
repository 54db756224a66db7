// The blocks: attention and MLP, one after the other or in parallel.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// What is found in block 0 is expected in each; after find_tokens.
void find_block(Findings& findings);

}  // namespace tessera::declare
