// The rows of row.hpp as the programs of one model, "rows": an entry point a row.
#pragma once

#include <vector>

#include "codegen/emit/model.hpp"

namespace tessera::test {

/// Planned for these instruction sets. Throws std::runtime_error that names the row which cannot be planned.
codegen::ModelFiles row_models(const std::vector<codegen::Target>& targets);

}  // namespace tessera::test
