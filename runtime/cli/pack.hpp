// The command pack.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_pack(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
