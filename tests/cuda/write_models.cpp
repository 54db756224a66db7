// write_models DIR: generates the toy models, scalar kernels and CUDA, into DIR; and for each a NAME_cuda_host.cpp,
// which compiles the same .cu file for a machine without a GPU.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/toy_models.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

void generate(const fs::path& folder, const graph::Graph& traced) {
  codegen::GeneratorOptions options;
  options.targets = {codegen::cpu_targets.front()};
  options.cuda = true;
  for (const auto& [name, text] : codegen::generate(traced, options)) write(folder / name, text);
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  generate(folder, trace<models::CifarVit<{}>>("vit_cifar"));
  generate(folder, trace<models::VitTiny>("vit_tiny"));
  for (const graph::Graph& traced :
       {trace<models::vit_mnist::VitMnist>("toy_mnist"), trace<models::ToyCifarVit>("toy_cifar"),
        trace<models::ToyVit>("toy_vit"), trace<models::ToyNotebookVit>("toy_notebook")}) {
    generate(folder, traced);
    write(folder / (traced.name + "_cuda_host.cpp"),
          "#define TESSERA_DEVICE_HEADER \"tests/cuda/host/device.hpp\"\n#include \"" + traced.name + "_cuda.cu\"\n");
  }
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_models DIR\n";
    return 2;
  }
  try {
    return tessera::test::run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write_models: " << error.what() << "\n";
    return 1;
  }
}
