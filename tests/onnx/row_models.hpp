// The rows of row.hpp as the programs of one model: an entry point a row.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "codegen/emit/model.hpp"
#include "tests/onnx/row.hpp"

namespace tessera::test {

/// Planned for these instruction sets. Throws std::runtime_error that names the row which cannot be planned.
codegen::ModelFiles row_models(const std::string& name, const std::vector<RecordedRow>& rows,
                               const std::vector<codegen::Target>& targets);

/// Writes their kernels, and row_kernels() of kernels.hpp, into NAME_ISA.cpp, NAME_kernels.h and NAME_table.cpp.
void write_row_kernels(const std::filesystem::path& folder, const codegen::ModelFiles& models);

}  // namespace tessera::test
