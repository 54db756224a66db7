// write_onnx FOLDER [TYPE...]: exports the models of tests/declared (or those of these types) and, where no types are
// given, timm's reduced instances, the small models of tests/kernels, each about one op, and random ones, as
// NUMBER.onnx; beside each what the interpreter answers to which inputs, NUMBER.safetensors. Prints a line for each:
// number, name and, where it is left out, why. onnx_runtime.py reads all of it.
//
// The interpreter takes its time: blocks are cut to two layers, and what is then still too much work is left out.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "codegen/error.hpp"
#include "runtime/safetensors.hpp"
#include "tests/declared/models.hpp"
#include "tests/kernels/generated_cases.hpp"
#include "tests/models/timm_models.hpp"
#include "tests/onnx_export/exported_model.hpp"

namespace tessera::test {
namespace {

constexpr std::int64_t most_work = 300'000'000;
constexpr int random_models = 100;

class Writer {
 public:
  explicit Writer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void declared(const codegen::DeclaredModel& declared, bool whatever_the_work) {
    ExportedModel model(declared.trace("model"), 2);
    const bool too_much = model.work() > most_work && !whatever_the_work;
    begin(std::string(declared.type), too_much ? "it is too much work for the interpreter" : "");
    if (too_much) return;
    model.fill();
    write(model, 2);
  }

  /// With its numbers in a file of their own, as a model of 2 GiB has them.
  void in_two_files(const codegen::DeclaredModel& declared) {
    ExportedModel model(declared.trace("model"), 2);
    begin(std::string(declared.type) + ",in_two_files");
    model.fill();
    write(model, 2, 0);
  }

  void timm(const TimmModel& reduced) {
    graph::Graph graph = reduced.record();
    graph.name = reduced.name;
    ExportedModel model(graph, 99);
    begin("timm," + reduced.name);
    model.fill();
    write(model, 2);
  }

  void recorded(const GeneratedCase& one) {
    Sketch sketch;
    one.record(sketch);
    sketch.graph.name = one.name;
    std::unique_ptr<ExportedModel> model;
    try {
      model = std::make_unique<ExportedModel>(sketch.graph, 99);
    } catch (const codegen::Error& training) {  // an op of training alone
      begin(one.name, training.what());
      return;
    }
    begin(one.name);
    model->fill(sketch.given);
    write(*model, sketch.batch);
  }

 private:
  void begin(const std::string& name, const std::string& left_out = "") {
    std::cout << ++number_ << ' ' << name << (left_out.empty() ? "" : " is left out: " + left_out) << std::endl;
  }

  void write(const ExportedModel& model, std::int64_t batch, std::uint64_t limit = INT32_MAX) const {
    const std::string name = (folder_ / std::to_string(number_)).string();
    model.write(name + ".onnx", {}, limit);
    runtime::Safetensors answers;
    for (const auto& [key, array] : model.answers(batch))
      answers.tensors[key] = runtime::Tensor::of(array.shape, std::span<const double>(array.numbers));
    runtime::write_safetensors(name + ".safetensors", answers);
  }

  std::filesystem::path folder_;
  int number_ = 0;
};

void write_all(const std::filesystem::path& folder, const std::vector<std::string>& types) {
  Writer writer(folder);
  for (const codegen::DeclaredModel& declared : declared_models())
    if (types.empty() || std::find(types.begin(), types.end(), declared.type) != types.end())
      writer.declared(declared, !types.empty());
  if (!types.empty()) return;
  for (const codegen::DeclaredModel& declared : declared_models())
    if (declared.type == "tessera::models::GoldenVit") writer.in_two_files(declared);
  for (const TimmModel& reduced : timm_models()) writer.timm(reduced);
  for (const GeneratedCase& one : generated_cases()) writer.recorded(one);
  for (int i = 0; i < random_models; ++i) writer.recorded(fuzz_case("fuzz_1_" + std::to_string(i)));
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: write_onnx FOLDER [TYPE...]\n";
    return 2;
  }
  try {
    tessera::test::write_all(argv[1], {argv + 2, argv + argc});
    return 0;
  } catch (const std::exception& wrong) {
    std::cerr << wrong.what() << '\n';
    return 1;
  }
}
