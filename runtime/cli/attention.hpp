// The command attention, of a model whose attention can be drawn.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_attention(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
