// The command eval.
#pragma once

#include "runtime/cli/subcommand.hpp"
#include "runtime/communicator.hpp"

namespace tessera::runtime {

Subcommand add_eval(CLI::App& app, CommandContext& context, const Communicator& ranks);

}  // namespace tessera::runtime
