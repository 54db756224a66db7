// From pictures to tokens: the patches, and the tokens and positions beside them.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// The convolution of patches and its norms.
void find_stem(Findings& findings);

/// What stands before the patches, how large pictures are, and the positions; after find_stem.
void find_tokens(Findings& findings);

}  // namespace tessera::declare
