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

bool runs_here(const std::string& isa) {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx2") return avx2;
  if (isa == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
  EXPECT_EQ(isa, "scalar") << "nothing here tests whether this processor runs it";
  return isa == "scalar";
}

/// Memory as the kernels want it: aligned, and no longer than they asked for. It starts as not-a-number, so that
/// reading what nobody wrote shows; and so does writing past the end.
class Memory {
 public:
  explicit Memory(std::int64_t reals) : reals_(static_cast<std::size_t>(reals)) {
    memory_.reset(static_cast<float*>(::operator new((reals_ + guard) * sizeof(float), std::align_val_t(64))));
    std::fill_n(memory_.get(), reals_, NAN);
    std::fill_n(memory_.get() + reals_, guard, 12345.0F);
  }
  ~Memory() {
    const float* end = memory_.get() + reals_;
    EXPECT_TRUE(std::all_of(end, end + guard, [](float r) { return r == 12345.0F; })) << "written past the end";
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  float* get() { return memory_.get(); }

 private:
  static constexpr std::size_t guard = 64;
  struct Free {
    void operator()(float* p) const { ::operator delete(p, std::align_val_t(64)); }
  };
  std::size_t reals_;
  std::unique_ptr<float, Free> memory_;
};

std::vector<std::int64_t> with_batch(const std::vector<Dim>& shape, std::int64_t batch) {
  std::vector<std::int64_t> dims;
  for (const Dim& dim : shape) dims.push_back(dim.known() ? dim.value() : batch);
  return dims;
}

/// One tensor of a row's numbers.
struct Numbers {
  std::string key;
  std::vector<std::int64_t> shape;
  runtime::Tensor tensor;
};

/// The first of `wanted` that `found` has otherwise: by more than 1e-5 of the largest finite one. Infinities and what
/// is no number have to be the same.
std::optional<std::size_t> first_that_differs(const std::vector<float>& wanted, const std::vector<float>& found) {
  float largest = 0;
  for (const float number : wanted)
    if (std::isfinite(number)) largest = std::max(largest, std::fabs(number));
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const bool same = std::isnan(wanted[k])      ? std::isnan(found[k])
                      : std::isfinite(wanted[k]) ? std::fabs(found[k] - wanted[k]) <= 1e-5F * largest
                                                 : found[k] == wanted[k];
    if (!same) return k;
  }
  return std::nullopt;
}

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
class GeneratedRow : public testing::TestWithParam<std::size_t> {
 protected:
  /// Records the row, and takes its own first axis for the batch where it has one.
  void record(const Row& declared) {
    ASSERT_EQ(declared.name, kernels.row);
    row = declared.record(declared.name);
    // What follows the inputs that the declaration takes are ONNX's axes, shapes and lengths.
    ASSERT_GE(inputs.size(), row.inputs.size());
    for (std::size_t i = row.inputs.size(); i < inputs.size(); ++i)
      ASSERT_EQ(inputs[i].tensor.dtype, "I64") << inputs[i].key << " is not taken";
    for (std::size_t i = row.inputs.size(); i-- > 0;)
      if (has_batch(row.inputs[i].shape)) batch = inputs[i].shape.at(0);
  }

  /// The row's inputs, as the kernels want them.
  void take_inputs(float* parameters, float* images, std::vector<std::int32_t>& labels) {
    for (std::size_t i = 0; i < row.inputs.size(); ++i) {
      const RowInput& input = row.inputs[i];
      const auto& [key, shape, tensor] = inputs[i];
      ASSERT_EQ(with_batch(input.shape, batch), shape) << key;
      if (input.kind == RowInput::Kind::labels) {
        for (const std::int64_t label : tensor.integers()) labels.push_back(static_cast<std::int32_t>(label));
        continue;
      }
      const std::vector<float> numbers = tensor.floats();
      if (input.kind == RowInput::Kind::parameter) {
        std::copy(numbers.begin(), numbers.end(), parameters + input.offset);
        continue;
      }
      const std::int64_t reals = reals_of(input.shape);
      for (std::int64_t b = 0; b < batch; ++b)
        std::copy_n(numbers.begin() + b * reals, reals, images + b * row.image_reals + input.offset);
    }
  }

  void expect_results(const float* outputs) {
    ASSERT_EQ(row.results.size(), wanted.size());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto& [key, shape, tensor] = wanted[i];
      ASSERT_EQ(with_batch(row.results[i], batch), shape) << key;
      const std::vector<float> numbers = tensor.floats();
      const std::int64_t reals = reals_of(row.results[i]);
      std::vector<float> found;
      for (std::int64_t image = 0; image < static_cast<std::int64_t>(numbers.size()) / reals; ++image)
        found.insert(found.end(), outputs + image * row.output_reals + offset,
                     outputs + image * row.output_reals + offset + reals);
      if (const auto k = first_that_differs(numbers, found))
        FAIL() << key << ": element " << *k << " is " << found[*k] << ", not " << numbers[*k];
      offset += reals;
    }
  }

  void expect_the_numbers_with_every_instruction_set() {
    for (const auto& [isa, function] : kernels.functions) {
      SCOPED_TRACE(isa);
      if (!runs_here(isa)) continue;
      Memory parameters(row.parameter_reals), images(batch * row.image_reals), outputs(batch * row.output_reals);
      Memory scratch(kernels.scratch_reals + batch * kernels.scratch_reals_of_image);
      std::vector<std::int32_t> labels;
      ASSERT_NO_FATAL_FAILURE(take_inputs(parameters.get(), images.get(), labels));
      function(parameters.get(), images.get(), labels.data(), batch, outputs.get(), nullptr, scratch.get());
      expect_results(outputs.get());
    }
  }

  const RowKernels& kernels = row_kernels()[GetParam()];
  std::vector<Numbers> inputs, wanted;
  RecordedRow row;
  std::int64_t batch = 1;
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
