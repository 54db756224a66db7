// The command predict.
#pragma once

#include "runtime/cli/subcommand.hpp"

namespace tessera::runtime {

Subcommand add_predict(CLI::App& app, CommandContext& context);

}  // namespace tessera::runtime
