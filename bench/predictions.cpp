// Writes docs/performance/nvidia-predicted.md: what the published models' CUDA kernels should take on an A100 (sm_80)
// and an H100 (sm_90a), by the plan's own prediction. Usage: predictions > docs/performance/nvidia-predicted.md
#include <fmt/format.h>

#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codegen/driver.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"
#include "models/vqgan.hpp"

namespace tessera::bench {
namespace {

constexpr const char* gpus[] = {"A100", "H100"};

/// A row of a prediction: all launches of a kernel of a program, which is a GEMM or none.
struct Row {
  std::string program, name;
  double ms = 0;
  bool gemm = false;
};

std::vector<Row> rows_of(const graph::Graph& model, const std::string& gpu, std::int64_t batch) {
  codegen::GeneratorOptions options;
  options.precision = codegen::Precision::bf16;
  std::istringstream text(codegen::predict(model, options, gpu, batch));
  std::vector<Row> rows;
  std::string program;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name, launches;
    double blocks = 0, waves = 0, gflop = 0, mb = 0, us = 0;
    if (!(words >> name >> launches)) continue;
    if (launches == "launches") program = name;
    if (words >> blocks >> waves >> gflop >> mb >> us)
      rows.push_back({program, name, std::stod(launches) * us / 1000, line.find("tiles of") != std::string::npos});
  }
  return rows;
}

template <class Of>
double sum_of(const std::vector<Row>& rows, Of of) {
  double sum = 0;
  for (const Row& row : rows)
    if (of(row)) sum += row.ms;
  return sum;
}
bool of_inference(const Row& row) { return row.program == "forward"; }
bool of_step(const Row& row) { return row.program == "loss_and_gradients" || row.program == "update"; }

std::string cell(double ms) { return ms < 10 ? fmt::format("{:.2f}", ms) : fmt::format("{:.1f}", ms); }

struct Vit {
  const char* name;
  graph::Graph (*trace)(std::string name);
  std::int64_t batch;
};
const Vit vits[] = {
    {"ViT-S/16", trace<models::VitSmall>, 256},           {"ViT-B/16", trace<models::VitBase>, 256},
    {"ViT-L/16", trace<models::VitLarge>, 256},           {"ViT-H/14", trace<models::VitHuge>, 256},
    {"DINOv2 S/14, 518", trace<models::Dinov2Small>, 32}, {"DINOv2 B/14, 518", trace<models::Dinov2Base>, 32},
    {"DINOv2 L/14, 518", trace<models::Dinov2Large>, 32}, {"DINOv2 g/14, 518", trace<models::Dinov2Giant>, 32}};

void write_vits() {
  std::cout
      << "## Vision Transformers\n\n"
         "| model | images | inference, A100 | H100 | training step, A100 | H100 |\n|---|---:|---:|---:|---:|---:|\n";
  for (const Vit& vit : vits) {
    const graph::Graph model = vit.trace("model");
    std::string inference, training;
    for (const char* gpu : gpus) {
      const std::vector<Row> rows = rows_of(model, gpu, vit.batch);
      inference += fmt::format(" {} |", cell(sum_of(rows, of_inference)));
      training += fmt::format(" {} |", cell(sum_of(rows, of_step)));
    }
    std::cout << fmt::format("| {} | {} |{}{}\n", vit.name, vit.batch, inference, training);
  }
}

bool has(const Row& row, const char* part) { return row.name.find(part) != std::string::npos; }
/// Of 3 x 3 or of 1 x 1, which attention's four linear maps are, too.
bool of_convolution(const Row& row) {
  return has(row, "conv") || has(row, "nin_shortcut") || has(row, "_q_") || has(row, "_k_") || has(row, "_v_") ||
         has(row, "proj_out");
}

void write_vqgan() {
  constexpr std::int64_t batch = 16;
  const graph::Graph model = trace<models::VqganReconstruct<models::VqganSpec{}>>("model");
  const std::pair<const char*, bool (*)(const Row&)> parts[] = {
      {"convolutions: GEMMs", [](const Row& row) { return of_convolution(row) && row.gemm; }},
      {"convolutions: copies of their inputs", [](const Row& row) { return of_convolution(row) && !row.gemm; }},
      {"group norms", [](const Row& row) { return !of_convolution(row) && has(row, "norm"); }},
      {"the rest: attention, the nearest code",
       [](const Row& row) { return !of_convolution(row) && !has(row, "norm"); }},
      {"all", [](const Row&) { return true; }}};
  std::cout << fmt::format(
      "\n## VQGAN, f16, 256 pixels: reconstruction of {} images\n\n| | A100 | H100 |\n|---|---:|---:|\n", batch);
  std::vector<std::vector<Row>> rows;
  for (const char* gpu : gpus) rows.push_back(rows_of(model, gpu, batch));
  const auto in_inference = [](const std::vector<Row>& all, bool (*of)(const Row&)) {
    return cell(sum_of(all, [&](const Row& row) { return of_inference(row) && of(row); }));
  };
  for (const auto& [name, of] : parts)
    std::cout << fmt::format("| {} | {} | {} |\n", name, in_inference(rows[0], of), in_inference(rows[1], of));
}

}  // namespace
}  // namespace tessera::bench

int main() {
  try {
    std::cout
        << "# NVIDIA GPUs: predicted\n\n"
           "**Predicted, not measured**; `build/release/bench/predictions` writes this page. Milliseconds in bf16 by "
           "the\n"
           "plans' own [predictions](../design/cuda.md#predicted-times), on an A100 (sm_80) and an H100 (sm_90a); a\n"
           "training step with the update. [An H200](nvidia-h200.md) takes 1.5 to 1.6 times what is predicted for "
           "ViT-B\nwith 256 images.\n\n";
    tessera::bench::write_vits();
    tessera::bench::write_vqgan();
  } catch (const std::exception& error) {
    std::cerr << "predictions: " << error.what() << "\n";
    return 1;
  }
}
