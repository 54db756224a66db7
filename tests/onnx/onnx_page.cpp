// onnx_page MANIFEST.tsv: writes docs/reference/onnx-coverage.md to standard output.
#include <exception>
#include <iostream>

#include "tests/onnx/manifest.hpp"

int main(int argc, char** argv) {
  try {
    if (argc == 2) {
      std::cout << tessera::test::coverage_page(tessera::test::read_manifest(argv[1]));
      return 0;
    }
    std::cerr << "usage: " << argv[0] << " MANIFEST.tsv" << std::endl;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << std::endl;
  }
  return 1;
}
