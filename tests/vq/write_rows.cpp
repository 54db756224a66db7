// write_vq_rows DIR: the kernels of every row of rows.hpp for all instruction sets, and a table of their entry points.
#include <exception>
#include <iostream>

#include "tests/onnx/row_models.hpp"
#include "tests/vq/rows.hpp"

int main(int argc, char** argv) {
  try {
    using namespace tessera;
    if (argc == 2) {
      const auto targets = codegen::targets_of(codegen::Precision::fp32);
      test::write_row_kernels(argv[1], test::row_models("vq_rows", test::recorded_vq_rows(), targets));
      return 0;
    }
    std::cerr << "usage: " << argv[0] << " DIR" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
