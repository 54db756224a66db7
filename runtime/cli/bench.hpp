// The command bench.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_bench(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
