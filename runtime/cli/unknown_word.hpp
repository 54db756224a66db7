// What is said of a command line that nobody understands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tessera::runtime {

/// The sentence for a word that nobody knows: what is near it, or which command takes it. `used` is the command that
/// the command line names, null for none; `extras` are the words left over.
std::string about_unknown(const CLI::App& app, const CLI::App* used, const std::vector<std::string>& extras);

}  // namespace tessera::runtime
