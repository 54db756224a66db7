// Models of depth: a Vision Transformer that gives four layers, and the head that makes depths of them.
#pragma once

#include "declare/findings.hpp"

namespace tessera::declare {

/// The whole model.
void find_depth(Findings& found);

}  // namespace tessera::declare
