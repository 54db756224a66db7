// write_models DIR: generates the toy models, scalar kernels and CUDA, into DIR (NAME_bf16: with factors of bf16); and
// for each a NAME_cuda_host.cpp, which compiles the same .cu file for a machine without a GPU. toy_race is one with a
// race. write_models DIR published: the models that are only compiled by nvcc, in their published sizes.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "codegen/driver.hpp"
#include "tests/cuda/cuda_models.hpp"
#include "tests/declared/models.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

void generate(const fs::path& folder, const CudaModel& model) {
  codegen::GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  if (model.traced.name.ends_with("_bf16")) options.precision = codegen::Precision::bf16;
  options.tiles = model.tiles;
  options.disabled_passes = model.passes.disabled;
  options.pass_options = model.passes.values;
  for (const auto& [name, text] : codegen::generate(model.traced, options)) write(folder / name, text);
}

/// Models that are only compiled by nvcc: in these precisions, of those of tests/declared.
struct Compiled {
  std::string type, name;
  bool fp32 = true, bf16 = true;
};

void generate(const fs::path& folder, const std::vector<Compiled>& models) {
  const DeclaredModels declared = declared_models();
  for (const Compiled& model : models) {
    const auto at = std::find_if(declared.begin(), declared.end(),
                                 [&](const codegen::DeclaredModel& d) { return d.type == model.type; });
    if (at == declared.end()) throw std::runtime_error("tests/declared has no " + model.type);
    if (model.fp32) generate(folder, CudaModel{at->trace(model.name)});
    if (model.bf16) generate(folder, CudaModel{at->trace(model.name + "_bf16")});
  }
}

int published(const fs::path& folder) {
  fs::create_directories(folder);
  std::vector<Compiled> models{{"tessera::models::VitSmall", "vit_small", true, false},
                               {"tessera::models::VitBase", "vit_base", true, false},
                               {"tessera::models::VitLarge", "vit_large", true, false},
                               {"tessera::models::VitHuge", "vit_huge", true, false},
                               {"tessera::models::SimpleVitSmall", "simple_vit_small"},
                               {"tessera::models::Dinov2Small", "dinov2_small"},
                               {"tessera::models::Dinov2Base", "dinov2_base"},
                               {"tessera::models::Dinov2Large", "dinov2_large"},
                               {"tessera::models::Dinov2Giant", "dinov2_giant"},
                               {"tessera::models::NotebookVit<{}>", "vit_notebook"},
                               {"tessera::models::VqganDigitsEncode", "vqgan_digits_encode"},
                               {"tessera::models::VqganDigitsDecode", "vqgan_digits_decode"},
                               {"tessera::models::VqganDigitsGenerator", "vqgan_digits_generator"},
                               {"tessera::models::VqganDigitsDiscriminator", "vqgan_digits_discriminator"},
                               {"tessera::models::DigitsGpt", "digits_gpt"}};
  generate(folder, models);
  return 0;
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  generate(folder, {{"tessera::models::CifarVit<{}>", "vit_cifar"},
                    {"tessera::models::VitTiny", "vit_tiny"},
                    {"tessera::models::SelfAttention2d<{}>", "self_attention_2d"},
                    {"tessera::models::VitSmall", "vit_small", false},
                    {"tessera::models::VitBase", "vit_base", false},
                    {"tessera::models::VitLarge", "vit_large", false},
                    {"tessera::models::VitHuge", "vit_huge", false}});
  generate(folder, vit_tiny_again());
  for (const CudaModel& model : heads_of_128()) generate(folder, model);
  for (const CudaModel& model : toy_cuda_models()) {
    const std::string& name = model.traced.name;
    generate(folder, model);
    write(folder / (name + "_cuda_host.cpp"),
          "#define TESSERA_DEVICE_HEADER \"tests/cuda/host/device.hpp\"\n#include \"" + name + "_cuda.cu\"\n");
  }

  const fs::path kernels = folder / "toy_race_cuda.cu";
  std::stringstream read;
  read << std::ifstream(kernels).rdbuf();
  std::string text = read.str();
  const std::string barrier = "barrier();  // the next tiles are written where these were read";
  const std::size_t at = text.find(barrier);
  if (at == std::string::npos) throw std::runtime_error("no place for a race");
  write(kernels, text.erase(at, barrier.size()));
  return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  const bool published = argc == 3 && std::string_view(argv[2]) == "published";
  if (argc != 2 && !published) {
    std::cerr << "usage: write_models DIR [published]\n";
    return 2;
  }
  try {
    return published ? tessera::test::published(argv[1]) : tessera::test::run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "write_models: " << error.what() << "\n";
    return 1;
  }
}
