// What VQGAN is made of, on PyTorch's numbers: generated kernels and the interpreter, values and gradients.
#include "tests/vq/rows.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/codegen/support/interpreter.hpp"
#include "tests/onnx/row_run.hpp"
#include "tests/paths.hpp"

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(paths::golden) / "vq";

/// A file of vqgan_small in tests/golden or, where that has it not, below TESSERA_SHARED.
fs::path small_model(const std::string& file) {
  const fs::path name = fs::path("vqgan_small") / (file + ".safetensors");
  const char* const shared = std::getenv("TESSERA_SHARED");
  return shared && !fs::exists(folder / name) ? fs::path(shared) / "golden" / "vq" / name : folder / name;
}
std::string gradients_of(const std::string& row) {
  return row.ends_with("_generator") ? "backward_generator" : "backward_discriminator";
}
bool is_operation(const std::string& row) { return !row.starts_with("vqgan_") && row != "digits_trained"; }

/// The tensors of a row: "in.x", "out.y", "slope.y", "grad.x". Of a whole model they lie in several files.
std::map<std::string, runtime::Tensor> tensors_of(const std::string& row, bool gradients) {
  const bool digits = row == "digits_trained";
  if (is_operation(row)) return runtime::read_safetensors(folder / "vq_operations" / (row + ".safetensors")).tensors;
  std::map<std::string, runtime::Tensor> all;
  const auto add = [&](const std::string& file, const std::string& side) {
    const fs::path in = digits ? folder / "digits_trained" / (file + ".safetensors") : small_model(file);
    // Buffers are beside gradients as what they have become.
    for (auto& [key, tensor] : runtime::read_safetensors(in).tensors)
      if (side != "grad." ||
          (key.find("running_") == std::string::npos && key.find("num_batches") == std::string::npos))
        all[side + key] = std::move(tensor);
  };
  if (digits) {
    add("vqgan", "in.");
    add("expected", "in.");
    add("expected", "out.");
    return all;
  }
  add("batch", "in.");
  add("params", "in.");
  add("forward", "in.");
  add("forward", "out.");
  if (gradients) add(gradients_of(row), "grad.");
  for (const char* loss : {"total_loss", "disc_loss"})
    all[std::string("slope.") + loss] = runtime::Tensor::of({}, std::vector<float>{1});
  return all;
}

/// A row of vq_rows(), by its values or by its gradients, as the kernels are numbered.
struct Case {
  VqRow row;
  bool gradients = false;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const VqRow& row : vq_rows()) all.push_back({row});
  for (const VqRow& row : vq_rows())
    if (row.sloped) all.push_back({row, true});
  return all;
}

class VqOperation : public testing::TestWithParam<std::size_t>, protected RowRun {
 protected:
  VqOperation() : RowRun(row_kernels()[GetParam()]) {}

  void SetUp() override {
    const auto [declared, gradients] = cases()[GetParam()];
    if (gradients && !is_operation(declared.name) && !fs::exists(small_model(gradients_of(declared.name))))
      GTEST_SKIP() << "TESSERA_SHARED names no folder with golden/vq/vqgan_small/" << gradients_of(declared.name)
                   << ".safetensors";
    RecordedRow recorded = gradients ? declared.gradients() : declared.values();
    ASSERT_EQ(recorded.graph.name, kernels.row);
    const std::map<std::string, runtime::Tensor> file = tensors_of(declared.name, gradients);
    const auto add = [&](std::vector<Numbers>& to, const std::string& key) {
      to.push_back({key, file.at(key).shape, file.at(key)});
    };
    const auto add_input = [&](const std::string& name) {
      const bool counts = name.ends_with("num_batches_tracked") || name.ends_with("initialized");
      const bool set_here = declared.name == "act_norm_first" && (name == "loc" || name == "scale");
      if (counts)
        inputs.push_back({name, {}, runtime::Tensor::of({}, std::vector<float>{0})});
      else if (set_here)
        inputs.push_back({name, {1, 5, 1, 1}, runtime::Tensor::of({1, 5, 1, 1}, std::vector<float>(5, 7))});
      else
        add(inputs, "in." + name);
    };
    std::vector<std::string> names = declared.inputs;
    for (const graph::Node& n : recorded.graph.nodes)  // of a module: ROW.ARGUMENT.KEY
      if (n.op == graph::Op::parameter) {
        const std::string key = n.name.substr(n.name.find('.') + 1);
        if (const std::size_t dot = key.find('.'); dot != std::string::npos) names.push_back(key.substr(dot + 1));
      }
    for (const std::string& name : names) add_input(name);
    if (gradients) {
      for (std::size_t k = 0; k < declared.sloped; ++k) add(inputs, "slope." + declared.results[k]);
      // What is frozen has none. A softmax does not see a bias of keys: PyTorch's derivative is rounding.
      for (const std::string& name : names)
        if (file.contains("grad." + name) && !name.ends_with("k.bias"))
          add(wanted, "grad." + name);
        else
          wanted.emplace_back();
      tolerance = 1e-4F;
    } else {
      // Squares of small differences of vectors of unit length: PyTorch's own last bits are 1e-5 of them.
      if (declared.name.starts_with("lpips")) tolerance = 2e-5F;
      for (const std::string& name : declared.results) add(wanted, "out." + name);
    }
    take(std::move(recorded));
  }
};

TEST_P(VqOperation, GivesPyTorchsNumbersWithEveryInstructionSet) { expect_the_numbers_with_every_instruction_set(); }

/// Through the interpreter of graphs, in which a whole model would take minutes.
class VqOperationAsGraph : public VqOperation {};

TEST_P(VqOperationAsGraph, GivesPyTorchsNumbers) {
  Memory parameters(row.parameter_reals), images(batch * row.image_reals);
  std::vector<std::int32_t> labels;
  ASSERT_NO_FATAL_FAILURE(take_inputs(parameters.get(), images.get(), labels));
  Arrays given{{"images", {{}, {images.get(), images.get() + batch * row.image_reals}}}};
  auto input = row.inputs.begin();
  for (const graph::Node& n : row.graph.nodes) {
    if (n.op != graph::Op::parameter) continue;
    while (input->kind != RowInput::Kind::parameter) ++input;
    const float* const at = parameters.get() + input++->offset;
    given[n.name] = {{}, {at, at + reals_of(n.shape)}};
  }
  const std::vector<double> found = interpret(row.graph, batch, given).at("outputs").numbers;
  expect_results(std::vector<float>(found.begin(), found.end()).data());
}

std::string row_name(const testing::TestParamInfo<std::size_t>& info) { return row_kernels()[info.param].row; }
std::vector<std::size_t> operations() {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < row_kernels().size(); ++i)
    if (is_operation(row_kernels()[i].row)) all.push_back(i);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Golden, VqOperation, testing::Range(std::size_t{0}, row_kernels().size()), row_name);
INSTANTIATE_TEST_SUITE_P(Golden, VqOperationAsGraph, testing::ValuesIn(operations()), row_name);

TEST(VqOperations, AreAllThatTheFolderHas) {
  std::set<std::string> theirs, ours;
  for (const auto& file : fs::directory_iterator(folder / "vq_operations"))
    if (const std::string name = file.path().stem().string(); !name.starts_with("next_token_")) theirs.insert(name);
  for (const VqRow& row : vq_rows())
    if (is_operation(row.name)) ours.insert(row.name);
  EXPECT_EQ(ours, theirs);
}

}  // namespace
}  // namespace tessera::test
