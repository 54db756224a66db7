// serve: a command of programs that link cpp-httplib (SERVE of tessera_add_model).
#pragma once

#include "runtime/command.hpp"

namespace tessera::runtime::serve {

/// The options of serve, and what it does: answers HTTP requests until SIGTERM or SIGINT, then what it has accepted,
/// and returns 0. A second signal ends the program at once.
Command command(const Recipe& declared);

}  // namespace tessera::runtime::serve
