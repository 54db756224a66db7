// write_onnx FOLDER [TYPE...]: exports the models of tests/declared (or those of these types) as NUMBER.onnx, and what
// the interpreter answers to random images as NUMBER.safetensors. Prints a line for each: number, type, layers that
// its blocks were cut to and work. onnx_runtime.py reads all of it.
//
// The interpreter takes its time: blocks are cut to two layers, and what is then still too much work is left out.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/safetensors.hpp"
#include "tests/declared/models.hpp"
#include "tests/onnx_export/exported_model.hpp"

namespace tessera::test {
namespace {

constexpr std::int64_t batch = 2, most_work = 150'000'000;

void write_all(const std::filesystem::path& folder, const std::vector<std::string>& types) {
  const DeclaredModels models = declared_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string type(models[i].type);
    if (!types.empty() && std::find(types.begin(), types.end(), type) == types.end()) continue;
    const int layers = 2;
    ExportedModel model(models[i].trace("model"), layers);
    std::cout << i << ' ' << type << ' ' << layers << ' ' << model.work();
    if (types.empty() && model.work() > most_work) {
      std::cout << " left out" << std::endl;
      continue;
    }
    std::cout << std::endl;
    model.fill();
    model.write((folder / (std::to_string(i) + ".onnx")).string());
    runtime::Safetensors answers;
    for (const auto& [name, array] : model.answers(batch))
      answers.tensors[name] = runtime::Tensor::of(array.shape, std::span<const double>(array.numbers));
    runtime::write_safetensors(folder / (std::to_string(i) + ".safetensors"), answers);
  }
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: write_onnx FOLDER [TYPE...]\n";
    return 2;
  }
  try {
    tessera::test::write_all(argv[1], {argv + 2, argv + argc});
    return 0;
  } catch (const std::exception& wrong) {
    std::cerr << wrong.what() << '\n';
    return 1;
  }
}
