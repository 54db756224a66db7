// Emitted programs of reduced instances of timm's architectures, against golden/timm, for each instruction set that
// they are emitted for and this processor has. TESSERA_TIMM names another folder of instances, and in it programs.txt:
// a line "ARCHITECTURE MODEL" each, as many architectures have the same declaration at these sizes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "codegen/isa.hpp"
#include "runtime/error.hpp"
#include "tests/kernels/generated_model.hpp"
#include "tests/models/timm_golden.hpp"

namespace tessera::test {
namespace {

using Model = GeneratedModel<float>;

struct Instance {
  std::string name;
  const Model* model;
};
void PrintTo(const Instance& instance, std::ostream* out) { *out << instance.name; }

std::vector<Instance> instances() {
  std::vector<Instance> all;
  const char* folder = std::getenv("TESSERA_TIMM");
  if (!folder) {
    for (const Model& model : generated_floats()) all.push_back({model.name, &model});
    return all;
  }
  std::ifstream file(std::filesystem::path(folder) / "programs.txt");
  for (std::string name, program; file >> name >> program;)
    for (const Model& model : generated_floats())
      if (model.name == program) all.push_back({name, &model});
  return all;
}

/// Aligned, and not-a-number where nobody wrote.
class Memory {
 public:
  explicit Memory(std::int64_t floats)
      : floats_(static_cast<float*>(::operator new(static_cast<std::size_t>(floats + 1) * sizeof(float), alignment))) {
    std::fill_n(floats_.get(), floats, NAN);
  }
  float* get() { return floats_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, alignment); }
  };
  std::unique_ptr<float, Free> floats_;
};

Memory bytes(std::int64_t count) { return Memory(count / static_cast<std::int64_t>(sizeof(float))); }

Array array(const std::vector<std::int64_t>& shape, const float* numbers) {
  std::size_t count = 1;
  for (const std::int64_t dim : shape) count *= static_cast<std::size_t>(dim);
  return {shape, {numbers, numbers + count}};
}

struct Apart {
  double outputs = 0, gradients = 0;
};

/// Outputs within 1e-5, every gradient within 1e-4, for both images at once and for one after the other.
Apart expect_timms_numbers(const std::string& name, const Model& model) {
  Arrays given = timm_arrays(name, "params");
  given.merge(timm_batch(name));
  const Array wanted = timm_arrays(name, "forward").at("outputs");
  Arrays gradients = timm_gradients(name);
  const double least = least_of(gradients);
  gradients["grad_output"] = wanted;  // of the loss, which is a sum of products of the two
  std::vector<float> parameters(static_cast<std::size_t>(model.parameter_reals)), all(parameters.size());
  std::size_t held = 1;  // the images
  for (const tessera_parameter& row : model.parameters) {
    const std::vector<double>& numbers = given.at(row.name).numbers;
    std::copy(numbers.begin(), numbers.end(), parameters.begin() + row.offset);
    EXPECT_TRUE(gradients.contains(row.name)) << name << ": timm has no gradient of " << row.name;
    held += gradients.contains(row.name);
  }
  EXPECT_EQ(held, gradients.size()) << name << ": timm has more gradients";
  const std::vector<double>& pixels = given.at("images").numbers;
  const std::vector<float> images(pixels.begin(), pixels.end());
  const std::int32_t labels[] = {0, 1};
  Memory packed(model.packed_reals);
  EXPECT_EQ(model.pack(parameters.data(), packed.get()), 0);
  std::vector<float> outputs(wanted.numbers.size()), pixel_gradients(pixels.size());
  float loss = NAN;
  Apart apart;
  const auto outputs_are_timms = [&](const char* function) {
    const double of_outputs = distance(array(wanted.shape, outputs.data()), wanted, 1e-3);
    EXPECT_LE(of_outputs, 1e-5) << name << ": outputs of " << function;
    apart.outputs = std::max(apart.outputs, of_outputs);
    std::fill(outputs.begin(), outputs.end(), NAN);
  };
  const auto gradient_is_timms = [&](const std::string& key, const float* numbers) {
    const auto theirs = gradients.find(key);
    if (theirs == gradients.end()) return;
    const double of_gradient = distance(array(theirs->second.shape, numbers), theirs->second, least);
    EXPECT_LE(of_gradient, 1e-4) << name << ": gradient of " << key;
    apart.gradients = std::max(apart.gradients, of_gradient);
  };
  EXPECT_EQ(model.forward(parameters.data(), packed.get(), images.data(), 2, outputs.data(),
                          bytes(model.forward_scratch_bytes(2)).get()),
            0);
  outputs_are_timms("forward");
  EXPECT_EQ(model.evaluate(parameters.data(), packed.get(), images.data(), labels, 2, outputs.data(), &loss,
                           bytes(model.evaluate_scratch_bytes(2)).get()),
            0);
  outputs_are_timms("evaluate");
  for (const std::int64_t at_once : {2, 1}) {
    std::fill(all.begin(), all.end(), NAN);
    EXPECT_EQ(
        model.loss_and_gradients(parameters.data(), packed.get(), images.data(), labels, 2, at_once, 1, 1,
                                 outputs.data(), &loss, all.data(), bytes(model.train_scratch_bytes(at_once)).get()),
        0);
    outputs_are_timms("loss_and_gradients");
    for (const tessera_parameter& row : model.parameters) gradient_is_timms(row.name, all.data() + row.offset);
  }
  EXPECT_EQ(model.input_gradient(parameters.data(), packed.get(), images.data(), labels, 2, outputs.data(), &loss,
                                 pixel_gradients.data(), bytes(model.input_gradient_scratch_bytes(2)).get()),
            0);
  outputs_are_timms("input_gradient");
  gradient_is_timms("images", pixel_gradients.data());
  return apart;
}

class TimmProgram : public testing::TestWithParam<Instance> {};

TEST_P(TimmProgram, ComputesTimmsNumbers) {
  const auto& [name, model] = GetParam();
  if (timm_folder(name).empty()) GTEST_SKIP() << "TESSERA_SHARED names no folder with golden/timm/" << name;
  int instruction_sets = 0;
  for (const codegen::Isa& row : codegen::isas) {
    const std::string isa(row.name);
    setenv("TESSERA_ISA", isa.c_str(), 1);
    if (model->isa() == isa) {  // else this processor does not have it, or the models are not emitted for it
      SCOPED_TRACE(isa);
      const Apart apart = expect_timms_numbers(name, *model);
      std::printf("  %s, %s: outputs %.1e, gradients %.1e\n", name.c_str(), isa.c_str(), apart.outputs,
                  apart.gradients);
      ++instruction_sets;
    }
    unsetenv("TESSERA_ISA");
  }
  EXPECT_GE(instruction_sets, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, TimmProgram, testing::ValuesIn(instances()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace tessera::test
