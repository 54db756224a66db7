// write_summaries DIR: writes DIR/<model>.txt for every model.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/models/summaries.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "Usage: write_summaries DIR\n";
    return 2;
  }
  for (const tessera::test::ModelSummary& model : tessera::test::model_summaries()) {
    const std::filesystem::path path = std::filesystem::path(argv[1]) / (model.name + ".txt");
    std::ofstream out(path, std::ios::binary);
    out << model.text();
    if (!out.flush()) {
      std::cerr << "cannot write " << path << '\n';
      return 1;
    }
  }
}
