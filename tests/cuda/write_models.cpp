// write_models DIR: generates the toy models, scalar kernels and CUDA, into DIR (NAME_bf16: with factors of bf16); and
// for each a NAME_cuda_host.cpp, which compiles the same .cu file for a machine without a GPU. toy_race is one with a
// race. write_models DIR published: the models that are only compiled by nvcc, in their published sizes.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "tests/cuda/example_models.hpp"
#include "tests/cuda/toy_models.hpp"
#include "tests/models/forward_only_models.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

/// Attention's backward pass computes probabilities again.
const std::pair<const std::string, std::string> again{codegen::cuda::without_attention_gradient, "again"};

/// The backward passes of norms make sums over their rows, which are few here, in so many blocks.
const std::pair<const std::string, std::string> in_norms{codegen::cuda::sums_in_norms, "18"};

/// The gradients that norms read are not rounded: the CPU rounds none of them.
const std::pair<const std::string, std::string> exact_gradients{codegen::cuda::norm_gradients, "none"};

/// What backward reads of a norm's result is stored, not computed again.
const std::pair<const std::string, std::string> results_of_norms{codegen::cuda::norm_inputs, "none"};

void generate(const fs::path& folder, const graph::Graph& traced, const codegen::cuda::Tiles& tiles = {}) {
  codegen::GeneratorOptions options;
  options.targets = {codegen::cpu_targets.front()};
  options.cuda = true;
  if (traced.name.ends_with("_bf16")) options.precision = codegen::Precision::bf16;
  options.tiles = tiles;
  for (const auto& [name, text] : codegen::generate(traced, options)) write(folder / name, text);
}

template <class Model>
void generate_published(const fs::path& folder, const std::string& name) {
  generate(folder, trace<Model>(name));
  generate(folder, trace<Model>(name + "_bf16"));
}

int published(const fs::path& folder) {
  fs::create_directories(folder);
  generate(folder, trace<models::VitSmall>("vit_small"));
  generate(folder, trace<models::VitBase>("vit_base"));
  generate(folder, trace<models::VitLarge>("vit_large"));
  generate(folder, trace<models::VitHuge>("vit_huge"));
  generate_published<models::SimpleVitSmall>(folder, "simple_vit_small");
  generate_published<models::Dinov2Small>(folder, "dinov2_small");
  generate_published<models::Dinov2Base>(folder, "dinov2_base");
  generate_published<models::Dinov2Large>(folder, "dinov2_large");
  generate_published<models::Dinov2Giant>(folder, "dinov2_giant");
  generate_published<models::NotebookVit<{}>>(folder, "vit_notebook");
  return 0;
}

int run(const fs::path& folder) {
  fs::create_directories(folder);
  generate(folder, trace<models::CifarVit<{}>>("vit_cifar"));
  generate(folder, trace<models::VitTiny>("vit_tiny"));
  generate(folder, trace<models::VitTiny>("vit_tiny_bf16"));
  generate(folder, trace<models::VitTiny>("vit_tiny_again_bf16"), {again});
  generate(folder, trace_example<models::SelfAttention2d<{}>>("self_attention_2d"));
  generate(folder, trace_example<models::SelfAttention2d<{}>>("self_attention_2d_bf16"));
  generate(folder, trace<models::CifarVit<{}>>("vit_cifar_bf16"));
  generate(folder, trace<models::VitSmall>("vit_small_bf16"));
  generate(folder, trace<models::VitBase>("vit_base_bf16"));
  generate(folder, trace<models::VitLarge>("vit_large_bf16"));
  generate(folder, trace<models::VitHuge>("vit_huge_bf16"));
  auto generate_both = [&](const graph::Graph& traced, const codegen::cuda::Tiles& tiles = {}) {
    generate(folder, traced, tiles);
    write(folder / (traced.name + "_cuda_host.cpp"),
          "#define TESSERA_DEVICE_HEADER \"tests/cuda/host/device.hpp\"\n#include \"" + traced.name + "_cuda.cu\"\n");
  };
  for (const graph::Graph& traced :
       {trace<models::vit_mnist::VitMnist>("toy_mnist"), trace<models::ToyVit>("toy_vit"),
        trace<models::vit_mnist::VitMnist>("toy_mnist_bf16"), trace_example<ToySelfAttention>("toy_self_attention"),
        trace_example<ToySelfAttention>("toy_self_attention_bf16"),
        trace_example<models::SentenceAttention>("sentence_attention"),
        trace_example<models::SentenceAttention>("sentence_attention_bf16"),
        trace_example<models::ScalarGraph>("scalar_graph"), trace<models::ToyCifarVit>("toy_cifar_bf16"),
        trace<models::ToyNotebookVit>("toy_notebook_bf16")})
    generate_both(traced);
  generate_both(trace<models::ToyCifarVit>("toy_cifar"), {in_norms});
  generate_both(trace<models::ToyNotebookVit>("toy_notebook"), {in_norms});
  // Tiles that sizes like these do not suggest.
  generate_both(trace<models::ToyVit>("toy_vit_bf16"), {{"", "64x64"},
                                                        {"wgmma:", "128x64"},
                                                        in_norms,
                                                        {"blocks_attn_qkv_forward", "64x128"},
                                                        {"blocks_mlp_fc1_forward", "32x64"},
                                                        {"blocks_mlp_fc2_forward", "128x64"},
                                                        {"wgmma:blocks_mlp_fc1_forward", "128x128"},
                                                        {"wgmma:blocks_mlp_fc2_forward", "128x192"}});
  generate_both(trace<models::ToyWideVit>("toy_wide_bf16"), {{"wgmma:", "64x128"}, in_norms, exact_gradients});
  generate_both(trace<models::ToyWideVit>("toy_wide_again_bf16"),
                {{"wgmma:", "64x128"}, again, in_norms, exact_gradients, results_of_norms});
  generate_both(trace_example<WideSelfAttention>("wide_self_attention_bf16"), {{"wgmma:", "64x128"}});
  generate_both(trace_example<WideSelfAttention>("self_attention_again_bf16"), {{"wgmma:", "64x128"}, again});

  // The same declarations without a loss.
  generate_both(trace<VitMnistInference>("toy_mnist_inference"));
  generate_both(trace<ForwardOnly<models::ToyWideVit>>("toy_wide_inference_bf16"), {{"wgmma:", "64x128"}});

  generate_both(trace<models::vit_mnist::VitMnist>("toy_race"));
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
