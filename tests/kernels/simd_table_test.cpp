// The list of vector functions that simd_test measures, against the operations: text alone, so that a cross build for
// another processor, which knows no folder of sources, does without it.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "codegen/passes/ops.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

// A function that no table has is one whose accuracy and ends nobody has looked at.
TEST(SimdTables, HaveTheFunctionOfEveryOpOfOneOrTwoOperands) {
  std::ifstream file(paths::simd_table);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const graph::Op op : codegen::elementwise_ops)
    if (const codegen::OpRow row = codegen::row_of(op); row.most <= 2 && !row.cpu.empty()) {
      EXPECT_NE(text.find(", " + std::string(row.cpu) + ")"), std::string::npos)
          << "tests/kernels/simd_table.inc has no " << row.cpu;
    }
}

}  // namespace
}  // namespace tessera::test
