// The instruction sets that the tests of emitted models ask for, those that programs prefer last: rows of the
// generator's table, so that a new row is tested too.
#pragma once

#include <string>
#include <vector>

#include "codegen/isa.hpp"

namespace tessera::test {

/// Whether the tests' models are emitted for it, for what this is compiled for: on x86-64 by default, on Arm as
/// tests/arm asks for.
constexpr bool is_emitted(const codegen::Isa& isa) {
#if defined(__aarch64__)
  return isa.family != codegen::Family::x86_64;
#else
  return isa.by_default;
#endif
}

/// Those of a model of this precision.
inline std::vector<std::string> instruction_sets_of(codegen::Precision precision) {
  std::vector<std::string> names;
  for (const codegen::Isa& isa : codegen::isas)
    if (is_emitted(isa) && isa.precisions.contains(precision)) names.emplace_back(isa.name);
  return names;
}
inline const std::vector<std::string> instruction_sets = instruction_sets_of(codegen::Precision::fp32);

}  // namespace tessera::test
