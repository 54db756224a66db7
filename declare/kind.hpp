// The kinds of models that checkpoints are of.
#pragma once

#include <cstdint>

#include "declare/input.hpp"

namespace tessera::declare {

enum class Kind : std::uint8_t {
  vit,    ///< models/vit.hpp and what is made of it
  swin,   ///< models/swin.hpp and swin_v2.hpp
  sam,    ///< models/sam.hpp
  depth,  ///< models/dpt.hpp
};

Kind kind_of(const Checkpoint& checkpoint);

/// What messages call it: "Swin Transformer".
const char* name_of(Kind kind);

/// How the templates in models/ have pictures prepared: a declaration has no lines of its own for that.
Input input_of(Kind kind);

}  // namespace tessera::declare
