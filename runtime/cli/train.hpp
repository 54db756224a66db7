// The command train.
#pragma once

#include "runtime/cli/subcommand.hpp"
#include "runtime/communicator.hpp"
#include "runtime/session.hpp"

namespace tessera::runtime {

/// `loop` is the emitted training loop, null where the model has no loss: the command is then understood, and refused.
Subcommand add_train(CLI::App& app, CommandContext& context, int (*loop)(Session&), const Communicator& ranks,
                     const std::string& program);

}  // namespace tessera::runtime
