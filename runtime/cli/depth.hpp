// The command depth, of a model that tells how far each pixel is away.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_depth(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
