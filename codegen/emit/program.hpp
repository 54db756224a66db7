// NAME_program.cpp: the training loop of the declared recipe, on top of the runtime.
#pragma once

#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// `cuda`: it can train on a GPU as well, where it is compiled with TESSERA_CUDA beside NAME_cuda_program.cu. `serve`:
/// it has the command serve.
std::string emit_program(const ModelFiles& model, bool cuda, bool serve);

}  // namespace tessera::codegen
