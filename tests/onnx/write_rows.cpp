// write_rows DIR: generates the kernels of every row of row.hpp for all instruction sets, one entry point a row, as the
// files of one model called "rows", and a table of the entry points.
#include <filesystem>
#include <iostream>

#include "tests/onnx/row_models.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

int run(const fs::path& folder) {
  write_row_kernels(folder, row_models("rows", recorded_rows(), codegen::targets_of(codegen::Precision::fp32)));
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  try {
    if (argc == 2) return tessera::test::run(argv[1]);
    std::cerr << "usage: " << argv[0] << " DIR" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
