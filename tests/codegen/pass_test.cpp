// The lists of passes over graphs and kernels: each that can be left out does something and can be left out, and behind
// each its result is verified. That the numbers stay right without it, tests/kernels shows.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/cuda/plan.hpp"
#include "codegen/driver.hpp"
#include "codegen/error.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/kernels/print.hpp"
#include "codegen/kernels/query.hpp"
#include "codegen/kernels/verify.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/plan/plan.hpp"
#include "dsl/trace.hpp"
#include "models/taming.hpp"
#include "models/vit.hpp"
#include "models/vit_relpos.hpp"

namespace tessera::test {
namespace {

using codegen::KernelProgram;
using codegen::Pass;
using codegen::PassOptions;
using codegen::Precision;
using codegen::ProgramKind;

/// 257 tokens: the scores of an image are larger than a CPU's L1. Probabilities drop out, and biases of scores are of
/// parameters alone.
using Vit =
    models::Vit<{.image = 64, .patch = 4, .width = 64, .heads = 2, .depth = 2, .classes = 10, .attention_dropout = 0.1},
                models::RelativeBlock>;

/// 257 tokens of four heads, whose probabilities do not drop out: the scores of an image are many for a CPU's backward
/// pass.
using LongVit = models::Vit<{.image = 64, .patch = 4, .width = 64, .heads = 4, .depth = 2, .classes = 10}>;

/// 65 tokens: CUDA's attention has at most 256 keys. Nothing drops out, so that its probabilities can be computed
/// again.
using SmallVit = models::Vit<{.image = 32, .patch = 4, .width = 64, .heads = 2, .depth = 2, .classes = 10}>;

/// The two programs between which all passes have something to do, as the driver makes them.
template <class Model>
std::vector<KernelProgram> programs(Precision precision, const std::vector<codegen::GraphPass>& last) {
  const graph::Graph declared = trace<Model>("vit");
  std::vector<KernelProgram> all;
  for (const ProgramKind kind : {ProgramKind::forward, ProgramKind::loss_and_gradients}) {
    const graph::Graph primitive =
        codegen::passed(codegen::passed(declared, codegen::program_passes(kind)), codegen::primitive_passes());
    all.push_back(codegen::lower(codegen::passed(primitive, last), kind));
    all.back().precision = precision;
  }
  return all;
}
template <class Model = Vit>
std::vector<KernelProgram> programs_for_cpu() {
  return programs<Model>(Precision::fp32, codegen::cpu_graph_passes());
}

/// A step of a model of sequences whose caches are two blocks of positions.
KernelProgram step_of_sequence(Precision precision = Precision::fp32) {
  const graph::Graph declared =
      trace<models::Gpt<{.codes = 32, .positions = 128, .layers = 1, .heads = 1, .width = 32}>>("gpt");
  KernelProgram step =
      codegen::lower(codegen::passed(codegen::passed(declared, codegen::program_passes(ProgramKind::step)),
                                     codegen::primitive_passes()),
                     ProgramKind::step);
  step.precision = precision;
  return step;
}

/// All that passes change: kernels and their order, and how tensors are stored, which the kernels' text does not say.
std::string text_of(const KernelProgram& planned) {
  std::string text = print(planned) + (planned.groups ? "in groups\n" : "");
  for (const codegen::Tensor& t : planned.tensors)
    text += t.name + " " + name_of(t.element) + " " + std::to_string(static_cast<int>(t.storage)) + " " +
            std::to_string(t.slots) + "\n";
  return text;
}
std::string on_cpu(const KernelProgram& program, const PassOptions& options) {
  return text_of(codegen::make_plan(program, codegen::targets_of(program.precision), options).program);
}
std::string on_gpu(const KernelProgram& program, const PassOptions& options) {
  return text_of(codegen::cuda::plan_for_gpu(program, options).program);
}

TEST(Passes, ForTheCpuCanEachBeLeftOutWhichChangesTheKernels) {
  std::vector<KernelProgram> all = programs_for_cpu();
  all.push_back(programs_for_cpu<LongVit>().back());
  all.push_back(step_of_sequence());
  all.push_back(step_of_sequence(Precision::bf16));
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

TEST(Passes, AStepReadsItsCachesUpToItsPositionAsBf16WhereProductsRound) {
  for (const Precision precision : codegen::precisions) {
    const KernelProgram planned =
        codegen::make_plan(step_of_sequence(precision), codegen::targets_of(precision)).program;
    int caches = 0, readers = 0;
    for (const codegen::TensorId t : planned.tensors.ids()) {
      if (planned.tensors[t].storage != codegen::Storage::cache) continue;
      ++caches;
      EXPECT_EQ(planned.tensors[t].element, precision == Precision::fp32 ? codegen::DType::real : codegen::DType::bf16);
      for (const codegen::Kernel& k : planned.kernels) {
        if (!codegen::loaded_by(k).contains(t)) continue;
        ++readers;
        EXPECT_TRUE(std::any_of(k.axes.begin(), k.axes.end(), [](const codegen::Axis& a) { return a.last.valid(); }))
            << k.name;
      }
    }
    EXPECT_EQ(caches, 2);
    EXPECT_EQ(readers, 2);
  }
}

TEST(Passes, ForCudaCanEachBeLeftOutWhichChangesTheKernels) {
  const std::vector<KernelProgram> all = programs<SmallVit>(Precision::bf16, {});
  for (const Pass& pass : codegen::cuda::cuda_passes()) {
    if (pass.required) continue;
    PassOptions with;
    if (pass.takes == "on") with.values[std::string(pass.name)] = "on";
    if (pass.name == "merge_sums") with.disabled.insert("column_reductions");  // which has them else
    PassOptions without = with;
    without.disabled.insert(std::string(pass.name));
    bool changes = false;
    for (const KernelProgram& program : all) changes |= on_gpu(program, without) != on_gpu(program, with);
    EXPECT_TRUE(changes) << pass.name;
  }
}

TEST(Passes, OverGraphsCanEachBeLeftOutWhichChangesTheGraph) {
  using codegen::GraphPass;
  using codegen::ProgramKind;
  // 257 tokens of two heads: what backward keeps of the scores is more than the probabilities' row max and sum.
  const auto graphs = [](const std::string& without) {
    const PassOptions options{.disabled = {without}};
    std::string text;
    for (graph::Graph g : {trace<Vit>("vit"), trace<LongVit>("vit")}) {
      for (const std::vector<GraphPass>& list : {codegen::declaration_passes(), codegen::narrowing_passes(),
                                                 codegen::program_passes(ProgramKind::loss_and_gradients),
                                                 codegen::primitive_passes(), codegen::cpu_graph_passes()})
        codegen::run_passes(g, list, options);
      text += codegen::print(g);
    }
    return text;
  };
  const std::string whole = graphs("");
  int left_out = 0;
  for (const std::vector<GraphPass>& list : {codegen::narrowing_passes(), codegen::cpu_graph_passes()})
    for (const GraphPass& pass : list) {
      if (pass.required) continue;
      EXPECT_NE(graphs(std::string(pass.name)), whole) << pass.name;
      ++left_out;
    }
  EXPECT_EQ(left_out, 4);
}

TEST(Passes, ThatLeaveAGraphBehindWhichIsNoneAreNamed) {
  graph::Graph g = trace<Vit>("vit");
  const codegen::GraphPass broken{"broken", "", [](const graph::Graph&) { return true; },
                                  [](graph::Graph& changed) { changed.outputs.front().node = 100000; }};
  try {
    codegen::run_passes(g, {broken}, {});
    FAIL();
  } catch (const codegen::Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("behind the pass broken, ", 0), 0u) << error.what();
  }
}

TEST(Passes, ThatLeaveKernelsBehindWhichAreNoneAreNamed) {
  KernelProgram program = programs_for_cpu().front();
  const auto always = [](const KernelProgram&) { return true; };
  const Pass good{"good", "", always, [](KernelProgram&) {}}, broken{"broken", "", always, [](KernelProgram& p) {
                                                                       p.kernels.front().name = "first";
                                                                       p.kernels.front().steps.clear();
                                                                     }};
  std::vector<std::string> seen;
  const PassOptions options{.after = [&](std::string_view pass, const std::string&) { seen.emplace_back(pass); }};
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
  std::string firsts;  // of which kind each text is
  options.dump_passes = [&](const std::string& stage, const std::string& text) {
    if (!stage.starts_with("forward_") && !stage.starts_with("declaration_")) return;
    stages.push_back(stage);
    firsts += text.starts_with("kernels of forward") ? 'k' : text.starts_with("graph \"m\"") ? 'g' : '?';
  };
  codegen::generate(trace<models::Vit<{.image = 16, .patch = 8, .width = 16, .heads = 2, .depth = 1}>>("m"), options);
  EXPECT_EQ(stages, (std::vector<std::string>{"declaration_behind_declaration_lines",
                                              "declaration_behind_canonical_order",
                                              "declaration_behind_dead_slices",
                                              "forward_behind_evaluation_dropout",
                                              "forward_behind_outputs",
                                              "forward_behind_decompose",
                                              "forward_behind_simplify",
                                              "forward_behind_row_sums",
                                              "forward_behind_recompute",
                                              "forward_behind_columns_innermost",
                                              "forward_behind_matrix_products",
                                              "forward_behind_constant_folding",
                                              "forward_behind_packed_parameters",
                                              "forward_behind_bias_gradients",
                                              "forward_behind_dropout_mask",
                                              "forward_behind_attention",
                                              "forward_cuda_behind_merge_sums",
                                              "forward_cuda_behind_residual_epilogue",
                                              "forward_cuda_behind_column_reductions",
                                              "forward_cuda_behind_norm_recompute"}));
  EXPECT_EQ(firsts, std::string(10, 'g') + std::string(10, 'k'));
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
  for (const codegen::PassList& passes :
       {codegen::PassList("", codegen::cpu_passes()), codegen::PassList("", codegen::cuda::cuda_passes()),
        codegen::PassList("", codegen::declaration_passes()), codegen::PassList("", codegen::narrowing_passes()),
        codegen::PassList("", codegen::program_passes(codegen::ProgramKind::forward)),
        codegen::PassList("", codegen::primitive_passes()), codegen::PassList("", codegen::cpu_graph_passes())})
    for (const codegen::PassList::Row& pass : passes.rows)
      EXPECT_NE(list.find("  " + std::string(pass.name) + " "), std::string::npos) << list;
  const std::string out = testing::TempDir() + "passes";
  EXPECT_EQ(run({"--out", out, "--disable-pass", "fusing"}, 1),
            "vit: there is no pass fusing: choose from declaration_lines, dead_slices, row_sums, recompute, "
            "columns_innermost, matrix_products, bf16_caches, "
            "constant_folding, packed_parameters, bias_gradients, dropout_mask, "
            "microbatch, attention_gradient, attention, positions, attention_recompute, merge_sums, residual_epilogue, "
            "norm_gradients, column_reductions, norm_recompute, operand_row_reductions\n");
  EXPECT_EQ(run({"--out", out, "--disable-pass", "bf16_storage"}, 1),
            "vit: the pass bf16_storage cannot be left out: what comes behind it relies on it\n");
  EXPECT_EQ(run({"--out", out, "--pass-option", "simplify=on"}, 1),
            "vit: the pass simplify takes no option, such as on\n");
  EXPECT_EQ(run({"--out", out, "--pass-option", "simplify"}, 1), "vit: --pass-option is NAME=VALUE, not simplify\n");
  EXPECT_EQ(run({"--out", out, "--pass-option", "attention_recompute=none"}, 1),
            "vit: the pass attention_recompute takes on or off, not none\n");
  EXPECT_EQ(run({"--out", out, "--pass-option", "column_reductions=0"}, 1),
            "vit: the pass column_reductions takes a number of CTAs from 1 to 65535, not 0\n");
}

}  // namespace
}  // namespace tessera::test
