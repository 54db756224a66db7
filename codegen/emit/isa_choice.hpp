// NAME.cpp's choice of kernels when the program runs: the widest instruction set of the processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// Whether the system has to be asked for AMX's tiles.
bool uses_amx(const ModelFiles& model);

/// choose_isa() and what it reads.
std::string isa_choice(const ModelFiles& model);

/// What comes after a program: its function returns, or goes on.
enum class Then : std::uint8_t { done, next };

/// switch (choose_isa()) over the kernels of one program, so deep in blocks.
std::string dispatch(const ModelFiles& model, const std::string& program, const std::vector<std::string>& arguments,
                     Then then = Then::done, int inside = 0);

}  // namespace tessera::codegen
