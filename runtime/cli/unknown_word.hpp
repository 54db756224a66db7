// What is said of a command line that nobody understands.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tessera::runtime {

/// The sentence for a word that nobody knows: what is near it, or which command takes it. `used` is the command that
/// the command line names, null for none; `extras` are the words left over.
std::string about_unknown(const CLI::App& app, const CLI::App* used, const std::vector<std::string>& extras);

/// Parses the command line, whose program is called as `app` is. Nothing where it goes on; else what it ends with: 0
/// after help, 2 after a sentence about what is wrong, or about no command at all: `what_to_do` are some.
std::optional<int> parsed(CLI::App& app, int argc, char** argv, const std::string& what_to_do);

}  // namespace tessera::runtime
