// ONNX's and PyTorch's numbers through generated kernels, and that no row is left out without a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <sstream>

#include "runtime/safetensors.hpp"
#include "tests/onnx/kernels.hpp"
#include "tests/onnx/manifest.hpp"
#include "tests/onnx/row.hpp"
#include "tests/onnx/row_run.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

/// The folder of the numbers, where it is at hand.
std::optional<fs::path> onnx_folder() {
  const char* shared = std::getenv("TESSERA_SHARED");
  const fs::path folder = fs::path(shared ? shared : "") / "golden" / "onnx";
  if (!shared || !fs::exists(folder)) return std::nullopt;
  return folder;
}
constexpr const char* no_folder = "TESSERA_SHARED names no folder with golden/onnx: ONNX's numbers are not at hand";

TEST(OnnxNumbers, AreComparedWhereTheyAreInfiniteAndBesideThat) {
  const float inf = INFINITY, nan = NAN;
  EXPECT_EQ(first_that_differs({inf, -inf, nan, 2}, {inf, -inf, nan, 2.00001F}), std::nullopt);
  EXPECT_EQ(first_that_differs({inf, 1}, {-inf, 1}), 0);
  EXPECT_EQ(first_that_differs({inf, 1}, {1e30F, 1}), 0);
  EXPECT_EQ(first_that_differs({inf, 1}, {inf, 7}), 1);
  EXPECT_EQ(first_that_differs({1, 2}, {1, inf}), 1);
  EXPECT_EQ(first_that_differs({1, 2}, {nan, 2}), 0);
  EXPECT_EQ(first_that_differs({nan, 2}, {1, 2}), 0);
}

/// The kernels of a row beside its numbers.
class GeneratedRow : public testing::TestWithParam<std::size_t>, protected RowRun {
 protected:
  GeneratedRow() : RowRun(row_kernels()[GetParam()]) {}

  void record(const Row& declared) {
    ASSERT_EQ(declared.name, kernels.row);
    take(declared.record(declared.name));
  }
};

std::string row_name(const testing::TestParamInfo<std::size_t>& info) { return row_kernels()[info.param].row; }

class OnnxRow : public GeneratedRow {
 protected:
  void SetUp() override {
    const std::optional<fs::path> folder = onnx_folder();
    if (!folder) GTEST_SKIP() << no_folder;
    const runtime::Safetensors file = runtime::read_safetensors(*folder / (kernels.row + ".safetensors"));
    for (const ManifestRow& published : read_manifest(*folder / "MANIFEST.tsv")) {
      if (published.name != kernels.row) continue;
      // The manifest's shapes: a number without axes stands in the file as [1].
      for (const ManifestTensor& t : published.inputs) inputs.push_back({t.key, t.shape, file.at(t.key)});
      for (const ManifestTensor& t : published.outputs) wanted.push_back({t.key, t.shape, file.at(t.key)});
    }
    record(onnx_rows()[GetParam()]);
  }
};

TEST_P(OnnxRow, GivesThePublishedNumbersWithEveryInstructionSet) { expect_the_numbers_with_every_instruction_set(); }

INSTANTIATE_TEST_SUITE_P(Manifest, OnnxRow, testing::Range(std::size_t{0}, onnx_rows().size()), row_name);

/// tests/golden/operators.safetensors, made by make_operators.py.
class PyTorchRow : public GeneratedRow {
 protected:
  void SetUp() override {
    const fs::path path = fs::path(paths::golden) / "operators.safetensors";
    const runtime::Safetensors file = runtime::read_safetensors(path);
    auto take = [&](const std::string& side, std::vector<Numbers>& to) {
      for (std::size_t i = 0;; ++i) {
        const std::string key = kernels.row + "/" + side + "." + std::to_string(i);
        if (!file.has(key)) break;
        to.push_back({key, file.at(key).shape, file.at(key)});
      }
    };
    take("in", inputs);
    take("out", wanted);
    record(pytorch_rows()[GetParam() - onnx_rows().size()]);
  }
};

TEST_P(PyTorchRow, GivesPyTorchsNumbersWithEveryInstructionSet) { expect_the_numbers_with_every_instruction_set(); }

INSTANTIATE_TEST_SUITE_P(Golden, PyTorchRow, testing::Range(onnx_rows().size(), row_kernels().size()), row_name);

TEST(PyTorchRows, AreAllThatTheFileHas) {
  std::set<std::string> theirs, ours;
  const fs::path path = fs::path(paths::golden) / "operators.safetensors";
  for (const auto& [key, tensor] : runtime::read_safetensors(path).tensors) theirs.insert(key.substr(0, key.find('/')));
  for (const Row& row : pytorch_rows()) ours.insert(row.name);
  EXPECT_EQ(ours, theirs);
}

TEST(OnnxManifest, HasNoRowThatIsNeitherCoveredNorHasAReasonWhyNot) {
  const std::optional<fs::path> folder = onnx_folder();
  if (!folder) GTEST_SKIP() << no_folder;
  std::set<std::string> theirs, ours;
  for (const ManifestRow& row : read_manifest(*folder / "MANIFEST.tsv")) theirs.insert(row.name);
  auto add = [&](const std::string& name) { EXPECT_TRUE(ours.insert(name).second) << name << " stands twice"; };
  for (const Row& row : onnx_rows()) add(row.name);
  for (const UncoveredRow& row : uncovered_onnx_rows()) {
    add(row.name);
    EXPECT_NE(row.reason, "") << row.name;
  }
  EXPECT_EQ(ours, theirs);
}

TEST(OnnxManifest, IsTheTableInTheDocs) {
  const std::optional<fs::path> folder = onnx_folder();
  if (!folder) GTEST_SKIP() << no_folder;
  std::ifstream page(paths::onnx_page);
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_TRUE(text.str() == coverage_page(read_manifest(*folder / "MANIFEST.tsv")))
      << "run onnx_page $TESSERA_SHARED/golden/onnx/MANIFEST.tsv > docs/reference/onnx-coverage.md";
}

}  // namespace
}  // namespace tessera::test
