// The commands export and import.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_export(CLI::App& app, CommandContext& context);
Subcommand add_import(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
