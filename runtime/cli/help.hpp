// What --help tells beside the options.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/model.hpp"

namespace tessera::runtime {

inline constexpr const char* what_a_run_leaves =
    "A training run keeps everything in one folder: checkpoint.safetensors (model, optimiser and place\n"
    "in the data), curve.csv, curve.svg, predictions.svg, report.txt and report.html, which holds it all. "
    "Ctrl-C saves and stops;\n"
    "train --resume goes on, with the same numbers as if nothing had happened.\n\n";

inline constexpr const char* environment =
    "Environment:\n"
    "  TESSERA_ISA=scalar|avx2|avx512   kernels to use instead of the best ones for this machine\n"
    "  TESSERA_L2_BYTES=BYTES           of a core's L2, instead of what the system says\n\n";

/// What --help of the program, without a command, ends with.
std::string footer(const Model& model);

/// --version, which every program has.
void add_version_flag(CLI::App& app, const Model& model);

}  // namespace tessera::runtime
