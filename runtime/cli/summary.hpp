// The command summary.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_summary(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
