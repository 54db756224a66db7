// SAM's image encoder: blocks over windows of a map, or over all of it, and a neck.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// The whole model.
void find_sam(Findings& found);

}  // namespace tessera::declare
