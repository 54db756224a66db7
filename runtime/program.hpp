// The command line of an emitted program: train, eval, predict, export, import, summary and more.
#pragma once

#include <optional>

#include "runtime/command.hpp"
#include "runtime/model.hpp"
#include "runtime/session.hpp"

namespace tessera::runtime {

/// Does what the command line says. `train` is the emitted training loop, null where the model has no loss. Returns the
/// program's exit code: 0, 1 after an error (one sentence on standard error), 2 for a command line that cannot be
/// understood, 130 after SIGINT or SIGTERM. `more` is a command beside those that every program has.
int program(const Model& model, const Recipe& recipe, int (*train)(Session&), int argc, char** argv,
            const std::optional<Command>& more = std::nullopt);

}  // namespace tessera::runtime
