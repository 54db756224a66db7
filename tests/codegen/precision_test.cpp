// What --precision bf16 makes of a plan, and which options it gets along with.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "codegen/driver.hpp"
#include "codegen/kernels/lower.hpp"
#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/gemm_operands.hpp"
#include "codegen/passes/recompute.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/subgraph.hpp"
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera::test {
namespace {

using codegen::Kernel;
using codegen::Plan;
using codegen::Precision;

using Vit = models::Vit<{.image = 32, .patch = 4, .width = 48, .heads = 3, .depth = 2, .classes = 10}>;

Plan plan(Precision precision, const graph::Graph& graph = codegen::differentiate(trace<Vit>("vit"), false),
          const std::vector<codegen::Target>& targets = codegen::targets_of(Precision::fp32)) {
  codegen::KernelProgram program = codegen::lower(
      codegen::copy_operands_n_innermost(codegen::recompute(codegen::simplify(codegen::decompose(graph)))),
      codegen::ProgramKind::evaluate);
  program.precision = precision;
  return codegen::make_plan(std::move(program), targets);
}

const codegen::Tensor& tensor(const Plan& plan, const std::string& name) {
  for (const codegen::Tensor& t : plan.program.tensors)
    if (t.name == name) return t;
  throw std::out_of_range("no tensor is called " + name);
}

TEST(Precision, FactorsOfProductsAreStoredAsBf16AndNothingIsInSinglePrecision) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Plan planned = plan(precision);
    int products = 0;
    for (const Kernel& k : planned.program.kernels) {
      if (k.gemm.columns < 0) continue;
      ++products;
      EXPECT_EQ(k.gemm.dtype == codegen::DType::bf16, precision == Precision::bf16) << k.name;
      const codegen::Expression& product = k.expressions[k.steps.front().value];
      for (const codegen::ExprId factor : {product.a, product.b}) {
        const codegen::Expression& e = k.expressions[factor];
        ASSERT_EQ(e.kind, codegen::Expression::Kind::load) << k.name;
        EXPECT_EQ(planned.program.tensors[e.access.tensor].element == codegen::DType::bf16,
                  precision == Precision::bf16)
            << k.name;
      }
    }
    EXPECT_GT(products, 20);
  }
}

TEST(Precision, TheResidualStreamAndWhatIsNoFactorStayInSinglePrecision) {
  const Plan planned = plan(Precision::bf16);
  for (const char* name : {"blocks.carry", "d_blocks.carry", "blocks.{}.add", "blocks.{}.norm1.multiply",
                           "blocks.{}.mlp.fc1.add", "blocks.{}.attn.einsum"})
    EXPECT_EQ(tensor(planned, name).element, codegen::DType::real) << name;
  for (const codegen::Tensor& t : planned.program.tensors)
    if (t.element != codegen::DType::real) {
      EXPECT_TRUE(t.storage == codegen::Storage::scratch || t.storage == codegen::Storage::packed) << t.name;
    }
}

TEST(Precision, WhatBackwardNeedsOfEachLayerIsKeptOnceAndAsBf16WhereAProductReadsIt) {
  const Plan planned = plan(Precision::bf16);
  EXPECT_EQ(tensor(planned, "blocks.{}.attn.divide").slots, 1);
  EXPECT_EQ(tensor(planned, "blocks.{}.attn.divide.bf16").slots, 2);
  EXPECT_LT(planned.scratch.per_batch, plan(Precision::fp32).scratch.per_batch * 0.85);
}

TEST(Precision, ARowThatTilesLeaveOverIsTakenUpWhereTheyAreNoHardware) {
  const Plan planned =
      plan(Precision::bf16, codegen::subgraph(trace<Vit>("vit"), {"outputs"}), codegen::targets_of(Precision::bf16));
  std::map<std::string, std::set<std::pair<std::int64_t, std::int64_t>>> tiles;  // rows of a product, of its tiles
  for (const auto& [target, schedules] : planned.schedules)
    for (std::size_t i = 0; i < schedules.size(); ++i) {
      const Kernel& k = planned.program.kernels[i];
      if (k.gemm.rows < 0 || k.gemm.dtype != codegen::DType::bf16) continue;
      const auto rows = static_cast<std::size_t>(k.gemm.rows);
      tiles[target].insert({k.axes[rows].dim.value(), schedules[i].tile[rows]});
    }
  using Tiles = std::set<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(tiles["avx512_bf16"], (Tiles{{64, 32}, {65, 33}}));
  EXPECT_EQ(tiles["amx"], (Tiles{{64, 32}, {65, 32}}));
}

TEST(Precision, ProductsWithAParameterReadRowsOfInt8AndTheirScales) {
  const Plan planned = plan(Precision::int8, codegen::subgraph(trace<Vit>("vit"), {"outputs"}));
  std::set<std::string> of_int8, of_real;
  for (const Kernel& k : planned.program.kernels)
    if (k.gemm.columns >= 0) (k.gemm.dtype == codegen::DType::int8 ? of_int8 : of_real).insert(k.name);
  EXPECT_EQ(of_int8,
            (std::set<std::string>{"blocks_attn_qkv_forward", "blocks_attn_proj_forward", "blocks_mlp_fc1_forward",
                                   "blocks_mlp_fc2_forward", "patch_embed_proj_matmul_forward"}));
  EXPECT_FALSE(of_real.empty());  // of attention
  const codegen::Tensor& row = tensor(planned, "blocks_mlp_fc2_forward.int8");
  EXPECT_EQ(row.element, codegen::DType::int8);
  EXPECT_EQ(row.shape.back().value(), 192);  // whole steps of 64
  EXPECT_EQ(tensor(planned, "blocks_mlp_fc2_forward.scales").shape.size(), row.shape.size() - 1);
}

TEST(Precision, RowsOfInt8MeetWeightsOfInt4WhoseScalesLieInTheirPanels) {
  const graph::Graph outputs = codegen::subgraph(trace<Vit>("vit"), {"outputs"});
  const Plan of_int8 = plan(Precision::int8, outputs), of_int4 = plan(Precision::int4, outputs);
  ASSERT_EQ(of_int4.program.kernels.size(), of_int8.program.kernels.size());
  for (std::size_t k = 0; k < of_int4.program.kernels.size(); ++k) {
    const codegen::DType found = of_int4.program.kernels[k].gemm.dtype,
                         of_bytes = of_int8.program.kernels[k].gemm.dtype;
    EXPECT_EQ(found, of_bytes == codegen::DType::int8 ? codegen::DType::int4 : of_bytes);
  }
  EXPECT_EQ(tensor(of_int4, "blocks_mlp_fc2_forward.int8").element, codegen::DType::int8);
  const std::string weight = "blocks.{}.mlp.fc2.weight.packed";
  EXPECT_EQ(tensor(of_int4, weight).element, codegen::DType::int4);
  const std::int64_t columns = tensor(of_int4, weight).shape[0].value();
  EXPECT_EQ(tensor(of_int4, weight + ".scales").shape[0].value(), columns);      // their sums
  EXPECT_EQ(tensor(of_int8, weight + ".scales").shape[0].value(), 2 * columns);  // and their scales
}

/// What a run without an error says on standard error, and the header that it writes.
std::pair<std::string, std::string> generated(const graph::Graph& declared, const std::string& precision) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tessera_precision";
  std::vector<std::string> options{"generator", "--isa", "scalar", "--precision", precision, "--out", folder};
  std::vector<char*> arguments;
  for (std::string& option : options) arguments.push_back(option.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(codegen::generator_main(declared, static_cast<int>(arguments.size()), arguments.data()), 0);
  std::stringstream header;
  header << std::ifstream(folder / (declared.name + ".h")).rdbuf();
  return {testing::internal::GetCapturedStderr(), header.str()};
}

TEST(Precision, ThatChangesNothingSaysSoWhenTheModelIsGeneratedAndInItsHeader) {
  using Narrow = models::Vit<{.image = 8, .patch = 4, .channels = 1, .width = 8, .heads = 2, .depth = 1, .mlp = 1}>;
  const graph::Graph narrow = codegen::subgraph(trace<Narrow>("narrow"), {"outputs"});
  for (const auto& [precision, of] :
       {std::pair{"bf16", ""}, {"int8", " with a parameter"}, {"int4", " with a parameter"}}) {
    const auto [said, header] = generated(narrow, precision);
    const std::string sentence = std::string("the precision ") + precision + " changes nothing: no matrix product" +
                                 of + " has 16 columns and as deep sums";
    EXPECT_EQ(said, "narrow: note: " + sentence + "\n");
    EXPECT_NE(header.find("/* Here " + sentence + ". */\n"), std::string::npos);
  }
  const graph::Graph wide = codegen::subgraph(trace<Vit>("vit"), {"outputs"});
  for (const auto& [graph, precision] : {std::pair{narrow, "fp32"}, {wide, "bf16"}, {wide, "int8"}, {wide, "int4"}}) {
    const auto [said, header] = generated(graph, precision);
    EXPECT_EQ(said, "") << precision;
    EXPECT_EQ(header.find("changes nothing"), std::string::npos) << precision;
  }
}

TEST(Precision, WhatTheGeneratorIsNotToldTogetherIsSaid) {
  const auto said = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"vit_generator", "--out", testing::TempDir() + "precision"});
    std::vector<char*> arguments;
    for (std::string& option : options) arguments.push_back(option.data());
    testing::internal::CaptureStderr();
    EXPECT_EQ(codegen::generator_main(trace<Vit>("vit"), static_cast<int>(arguments.size()), arguments.data()), 1);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said({"--precision", "fp16"}), "vit: --precision is fp32, bf16, int8 or int4, not fp16\n");
  EXPECT_EQ(said({"--isa", "scalar,amx"}), "vit: --isa amx needs --precision bf16 or int8\n");
  EXPECT_EQ(said({"--isa", "scalar,sse", "--precision", "bf16"}),
            "vit: there is no instruction set sse: choose from scalar, avx2, avx512, avx512_vnni, avx512_bf16, amx, "
            "neon\n");
  EXPECT_EQ(said({"--isa", "scalar", "--real", "double", "--precision", "bf16"}),
            "vit: --precision bf16, int8 and int4 work with --real float only\n");
  EXPECT_EQ(said({"--isa", "scalar,scalar"}), "vit: --isa names scalar twice\n");
  EXPECT_EQ(said({"--isa", "scalar,avx512_vnni", "--precision", "bf16"}),
            "vit: --isa avx512_vnni needs --precision int8 or int4\n");
  EXPECT_EQ(said({"--distributed"}), "vit: --distributed is for --train\n");
  for (const char* const precision : {"int8", "int4"})
    EXPECT_EQ(said({"--cuda", "--precision", precision}), "vit: --cuda works with --precision fp32 or bf16 only\n");
}

}  // namespace
}  // namespace tessera::test
