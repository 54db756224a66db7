// The table of instruction sets: that all who read it agree, and that its order alone decides which kernels run.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "codegen/driver.hpp"
#include "codegen/embedded.hpp"
#include "codegen/error.hpp"
#include "codegen/passes/ops.hpp"
#include "dsl/trace.hpp"
#include "models/vit_mnist.hpp"

namespace tessera::test {
namespace {

using codegen::Family;
using codegen::Isa;
using codegen::Precision;

std::vector<std::string> names_of(const std::vector<codegen::Target>& targets) {
  std::vector<std::string> names;
  for (const codegen::Target& target : targets) names.emplace_back(target.name);
  return names;
}

TEST(Isas, ThoseThatCMakeBuildsByDefaultAreThoseThatTheGeneratorEmits) {
  std::istringstream by_cmake(TESSERA_ISAS_OF_CMAKE);  // "fp32 scalar avx2/bf16 ..."
  for (const Precision precision : codegen::precisions) {
    std::string line, expected = name_of(precision);
    ASSERT_TRUE(std::getline(by_cmake, line, '/'));
    for (const std::string& name : names_of(codegen::targets_of(precision))) expected += " " + name;
    EXPECT_EQ(line, expected);
  }
}

std::string simd(std::string_view text) {
  return std::string(codegen::embedded("cpu/simd/" + std::string(text) + ".h"));
}

TEST(Isas, NameTextsThatThereAre) {
  for (const Isa& isa : codegen::isas) {
    std::vector<std::string_view> texts(isa.begin.begin(), isa.begin.end());
    texts.insert(texts.end(), isa.bf16.begin(), isa.bf16.end());
    texts.insert(texts.end(), isa.int8.begin(), isa.int8.end());
    texts.insert(texts.end(), isa.int4.begin(), isa.int4.end());
    if (!isa.pack_bf16.empty()) texts.push_back(isa.pack_bf16);
    for (const std::string_view text : {isa.vectors, isa.end}) texts.push_back(text);
    for (const std::string_view text : texts) EXPECT_NO_THROW(simd(text)) << isa.name << " names " << text;
  }
}

// An op whose function is forgotten would be found by who first declares a model with it.
TEST(Isas, HaveTheFunctionOfEveryOp) {
  for (const Isa& isa : codegen::isas) {
    const std::string text = simd(isa.vectors) + simd("math") + simd("trig");
    for (const graph::Op op : codegen::elementwise_ops)
      if (const std::string function(codegen::row_of(op).cpu); !function.empty()) {
        EXPECT_NE(text.find(" " + function + "("), std::string::npos) << isa.name << " has no " << function;
      }
  }
  const std::set<std::string> of_cuda{"expf", "logf", "sqrtf", "tanhf", "erff"};
  const std::string device(codegen::embedded("cuda/device/math.h"));
  for (const graph::Op op : codegen::elementwise_ops)
    if (const std::string function(codegen::row_of(op).cuda); function.size() > 1 && !of_cuda.contains(function)) {
      EXPECT_NE(device.find(" " + function + "("), std::string::npos) << "math.h has no " << function;
    }
}

TEST(Isas, CpuidIsAskedForAllThatThePragmasAllow) {
  for (const Isa& isa : codegen::isas) {
    std::string pragmas;
    for (const std::string_view text : isa.begin) pragmas += simd(text);
    int found = 0;
    for (std::size_t at = 0; (at = pragmas.find("target(\"", at)) != std::string::npos; ++found) {
      at += 8;
      std::istringstream list(pragmas.substr(at, pragmas.find('"', at) - at));
      std::set<std::string, std::less<>> allowed;
      for (std::string feature; std::getline(list, feature, ',');) allowed.insert(feature);
      allowed.erase("amx-tile");  // both others have it
      EXPECT_EQ(allowed, (std::set<std::string, std::less<>>(isa.cpu_features.begin(), isa.cpu_features.end())))
          << isa.name;
    }
    EXPECT_EQ(found, isa.family == Family::x86_64 ? 2 : 0) << isa.name;  // for Clang and for GCC
  }
}

TEST(Isas, HaveATestEachInTheFunctionThatChooses) {
  for (const Precision precision : codegen::precisions) {
    codegen::GeneratorOptions options;
    options.precision = precision;
    for (const Isa& isa : codegen::isas)
      if (isa.precisions.contains(precision)) options.isas.emplace_back(isa.name);
    const std::string text = codegen::generate(trace<models::vit_mnist::VitMnist>("m"), options).at("m.cpp");
    for (std::size_t i = 1; i < options.isas.size(); ++i) {
      const std::string of_x86 = "    case " + std::to_string(i) + ":\n      return __builtin_cpu_supports(\"";
      const std::string of_arm = "#if defined(__aarch64__)\n  if (isa == " + std::to_string(i) + ") return true;\n";
      const bool x86 = codegen::find_isa(options.isas[i])->family == Family::x86_64;
      EXPECT_NE(text.find(x86 ? of_x86 : of_arm), std::string::npos) << options.isas[i];
    }
  }
}

TEST(Isas, TheOrderInWhichTheyAreNamedChangesNothing) {
  const graph::Graph traced = trace<models::vit_mnist::VitMnist>("m");
  codegen::GeneratorOptions options;
  options.isas = {"scalar", "avx2", "avx512"};
  const std::map<std::string, std::string> files = codegen::generate(traced, options);
  options.isas = {"avx512", "scalar", "avx2"};
  EXPECT_TRUE(codegen::generate(traced, options) == files);
  EXPECT_NE(files.at("m.cpp").find("isa_names[] = {\"scalar\", \"avx2\", \"avx512\"}"), std::string::npos);
}

TEST(Isas, AListThatCannotBeEmittedIsRefusedInOneSentence) {
  const auto said = [](const std::vector<std::string>& names) -> std::string {
    try {
      codegen::targets_named(names, Precision::fp32);
    } catch (const codegen::Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said({"avx512", "scalar"}), "");
  EXPECT_EQ(said({"scalar", "scalar"}), "--isa names scalar twice");
  EXPECT_EQ(said({"avx2", "scalar", "avx2"}), "--isa names avx2 twice");
  EXPECT_EQ(said({"avx2", "avx512"}), "--isa must hold scalar, which every machine can run");
  EXPECT_EQ(said({"scalar", "amx"}), "--isa amx needs --precision bf16 or int8");
  EXPECT_EQ(said({"scalar", ""}),
            "there is no instruction set : choose from scalar, avx2, avx512, avx512_vnni, avx512_bf16, amx, neon");
}

TEST(Isas, AreAllInTheHelpThatTheGeneratorPrints) {
  char name[] = "generator", help[] = "--help";
  char* arguments[] = {name, help};
  testing::internal::CaptureStdout();
  EXPECT_EQ(codegen::generator_main(trace<models::vit_mnist::VitMnist>("m"), 2, arguments), 0);
  const std::string said = testing::internal::GetCapturedStdout();
  const std::string list = said.substr(said.find("--isa LIST"), said.find("--train") - said.find("--isa LIST"));
  for (const Isa& isa : codegen::isas) EXPECT_NE(list.find(" " + std::string(isa.name)), std::string::npos) << list;
  for (const char* rest :
       {" avx512,", " avx512_bf16 (bf16, int8, int4),", " amx (bf16, int8),", " neon (aarch64, not by default)\n"})
    EXPECT_NE(list.find(rest), std::string::npos) << list;
}

}  // namespace
}  // namespace tessera::test
