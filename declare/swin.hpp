// A Swin Transformer's stages.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

bool is_swin(const Checkpoint& checkpoint);

/// The whole model.
void find_swin(Findings& found);

}  // namespace tessera::declare
