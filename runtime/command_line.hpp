// The command line of a program that is not runtime/program.cpp's: read in one sentence, or ended.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "runtime/labels.hpp"

namespace tessera::runtime {

/// Reads the command line. Returns the exit code with which the program ends now: 0 after the help that was asked for,
/// 2 after one sentence about what is wrong; nothing where it goes on.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return app.exit(wrong);
    std::cerr << app.get_name() << ": " << without_controls(wrong.what()) << " (" << app.get_name()
              << " --help tells more)\n";
    return 2;
  }
}

}  // namespace tessera::runtime
