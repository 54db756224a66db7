// A Swin Transformer's stages.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// The whole model.
void find_swin(Findings& found);

}  // namespace tessera::declare
