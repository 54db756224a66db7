// The lists of passes over kernels: each that can be left out does something and can be left out, and behind each the
// kernels are verified. That the numbers stay right without it, tests/kernels shows.
#include <gtest/gtest.h>

#include "codegen/cuda/plan.hpp"
#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/columns.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera::test {
namespace {

using codegen::KernelProgram;
using codegen::Pass;
using codegen::PassOptions;
using codegen::Precision;
using codegen::ProgramKind;

/// 257 tokens: the scores of an image are larger than a CPU's L1. Probabilities drop out.
using Vit = models::Vit<{
    .image = 64, .patch = 4, .width = 64, .heads = 2, .depth = 2, .classes = 10, .attention_dropout = 0.1}>;

/// The two programs between which all passes have something to do.
std::vector<KernelProgram> programs(Precision precision) {
  const graph::Graph declared = trace<Vit>("vit");
  std::vector<KernelProgram> all;
  for (const ProgramKind kind : {ProgramKind::forward, ProgramKind::loss_and_gradients}) {
    const bool trains = kind == ProgramKind::loss_and_gradients;
    const graph::Graph graph = trains ? codegen::differentiate(declared, false)
                                      : codegen::subgraph(codegen::without_dropout(declared), {"outputs"});
    all.push_back(codegen::lower(codegen::bring_columns_innermost(codegen::simplify(codegen::decompose(graph))), kind));
    all.back().precision = precision;
  }
  return all;
}

std::string on_cpu(const KernelProgram& program, const PassOptions& options) {
  const KernelProgram planned = codegen::make_plan(program, codegen::targets_of(program.precision), options).program;
  return print(planned) + (planned.groups ? "in groups\n" : "");
}
std::string on_gpu(const KernelProgram& program, const PassOptions& options, const codegen::cuda::Tiles& tiles) {
  return print(codegen::cuda::plan_for_gpu(program, tiles, options).program);
}

TEST(Passes, ForTheCpuCanEachBeLeftOutWhichChangesTheKernels) {
  const std::vector<KernelProgram> all = programs(Precision::fp32);
  std::vector<std::string> whole;
  for (const KernelProgram& program : all) whole.push_back(on_cpu(program, {}));
  for (const Pass& pass : codegen::cpu_passes()) {
    if (pass.required) continue;
    bool changes = false;
    for (std::size_t i = 0; i < all.size(); ++i)
      changes |= on_cpu(all[i], {.disabled = {std::string(pass.name)}}) != whole[i];
    EXPECT_TRUE(changes) << pass.name;
  }
}

TEST(Passes, ForCudaCanEachBeLeftOutWhichChangesTheKernels) {
  const std::vector<KernelProgram> all = programs(Precision::bf16);
  for (const Pass& pass : codegen::cuda::cuda_passes({})) {
    if (pass.required) continue;
    codegen::cuda::Tiles tiles;
    if (pass.name == "attention_recompute") tiles[codegen::cuda::without_attention_gradient] = "again";
    bool changes = false;
    for (const KernelProgram& program : all)
      changes |= on_gpu(program, {.disabled = {std::string(pass.name)}}, tiles) != on_gpu(program, {}, tiles);
    EXPECT_TRUE(changes) << pass.name;
  }
}

TEST(Passes, ThatLeaveKernelsBehindWhichAreNoneAreNamed) {
  KernelProgram program = programs(Precision::fp32).front();
  const auto always = [](const KernelProgram&) { return true; };
  const Pass good{"good", "", always, [](KernelProgram&) {}}, broken{"broken", "", always, [](KernelProgram& p) {
                                                                       p.kernels.front().name = "first";
                                                                       p.kernels.front().steps.clear();
                                                                     }};
  std::vector<std::string> seen;
  const PassOptions options{.after = [&](const Pass& pass, const KernelProgram&) { seen.emplace_back(pass.name); }};
  try {
    run_passes(program, {good, broken}, options);
    FAIL();
  } catch (const codegen::Error& error) {
    EXPECT_STREQ(error.what(), "behind the pass broken, kernels of forward: first does nothing");
  }
  EXPECT_EQ(seen, std::vector<std::string>{"good"});
}

TEST(Passes, AreDumpedEachWithTheKernelsBehindIt) {
  codegen::GeneratorOptions options;
  options.isas = {"scalar"};
  options.cuda = true;
  std::vector<std::string> stages;
  options.dump_passes = [&](const std::string& stage, const std::string& text) {
    EXPECT_TRUE(text.starts_with("kernels of ")) << stage;
    if (stage.starts_with("forward_")) stages.push_back(stage);
  };
  codegen::generate(trace<models::Vit<{.image = 16, .patch = 8, .width = 16, .heads = 2, .depth = 1}>>("m"), options);
  EXPECT_EQ(stages, (std::vector<std::string>{
                        "forward_behind_matrix_products", "forward_behind_packed_parameters",
                        "forward_behind_bias_gradients", "forward_behind_dropout_mask", "forward_behind_attention",
                        "forward_cuda_behind_merge_sums", "forward_cuda_behind_residual_epilogue",
                        "forward_cuda_behind_norm_gradients", "forward_cuda_behind_column_reductions",
                        "forward_cuda_behind_norm_recompute", "forward_cuda_behind_operand_row_reductions"}));
}

TEST(Passes, AreListedAndOneThatIsNoneOrIsNeededIsRefusedInOneSentence) {
  const auto run = [](std::vector<std::string> options, int code) {
    options.insert(options.begin(), "generator");
    std::vector<char*> arguments;
    for (std::string& option : options) arguments.push_back(option.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(codegen::generator_main(trace<Vit>("vit"), static_cast<int>(arguments.size()), arguments.data()), code);
    return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  };
  const std::string list = run({"--list-passes"}, 0);
  for (const std::vector<Pass>& passes : {codegen::cpu_passes(), codegen::cuda::cuda_passes({})})
    for (const Pass& pass : passes)
      EXPECT_NE(list.find("  " + std::string(pass.name) + " "), std::string::npos) << list;
  const std::string out = testing::TempDir() + "passes";
  EXPECT_EQ(
      run({"--out", out, "--disable-pass", "fusing"}, 1),
      "vit: there is no pass fusing: choose from matrix_products, packed_parameters, bias_gradients, dropout_mask, "
      "microbatch, attention, attention_gradient, attention_recompute, merge_sums, residual_epilogue, "
      "norm_gradients, column_reductions, norm_recompute, operand_row_reductions\n");
  EXPECT_EQ(run({"--out", out, "--disable-pass", "bf16_storage"}, 1),
            "vit: the pass bf16_storage cannot be left out: what comes behind it relies on it\n");
}

}  // namespace
}  // namespace tessera::test
