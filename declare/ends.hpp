// From tokens to classes.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// Pooling, last norm and head; after find_block.
void find_ends(Findings& findings);

}  // namespace tessera::declare
