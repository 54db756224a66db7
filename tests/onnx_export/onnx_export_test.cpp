// The bytes that `export --onnx` writes, of every declared model that is not too large for this, read back.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "runtime/onnx.hpp"
#include "tests/declared/models.hpp"
#include "tests/onnx_export/exported_model.hpp"
#include "tests/onnx_export/onnx_reader.hpp"
#include "tests/runtime/helpers.hpp"

namespace tessera::test {
namespace {

using runtime::slurp;
using runtime::TemporaryFolder;

constexpr std::int64_t most_floats = 2'000'000;

std::uint64_t bytes_of(std::int64_t type) { return type == 1 || type == 6 ? 4 : type == 7 ? 8 : 0; }

/// Every value is made once and before it is read, by a node, as an initializer or by the caller; all of them are read.
void expect_sound(const OnnxFile& file) {
  std::set<std::string> made, read, nodes;
  const auto make = [&](const std::string& name) { EXPECT_TRUE(made.insert(name).second) << name << " is made twice"; };
  for (const OnnxValue& input : file.inputs) make(input.name);
  for (const OnnxTensor& t : file.initializers) {
    make(t.name);
    std::uint64_t bytes = bytes_of(t.type);
    for (std::int64_t dim : t.shape) bytes *= static_cast<std::uint64_t>(dim);
    EXPECT_EQ(t.raw.size(), bytes) << t.name;
  }
  for (const OnnxNode& n : file.nodes) {
    EXPECT_TRUE(nodes.insert(n.name).second) << n.name << " is the name of two nodes";
    for (const std::string& input : n.inputs) {
      EXPECT_TRUE(made.contains(input)) << n.name << " reads " << input << ", which nothing before it makes";
      read.insert(input);
    }
    for (const std::string& output : n.outputs) make(output);
  }
  for (const OnnxValue& output : file.outputs) {
    EXPECT_TRUE(made.contains(output.name)) << output.name;
    read.insert(output.name);
  }
  for (const OnnxTensor& t : file.initializers) EXPECT_TRUE(read.contains(t.name)) << t.name << " is not read";
}

TEST(OnnxExport, EveryDeclaredModelIsASoundGraphWithTheParametersAsTheyAre) {
  const TemporaryFolder folder;
  const std::string path = (folder / "model.onnx").string();
  int models = 0;
  for (const codegen::DeclaredModel& declared : declared_models()) {
    SCOPED_TRACE(declared.type);
    ExportedModel exported(declared.trace("model"), 2);
    if (exported.parameter_floats() > most_floats) continue;
    exported.fill();
    exported.write(path);
    const std::string bytes = slurp(path);
    const OnnxFile file = read_onnx(bytes);
    expect_sound(file);
    EXPECT_EQ(file.ir_version, 8);
    EXPECT_EQ(file.opset, 17);
    ASSERT_EQ(file.inputs.size(), 1u);
    EXPECT_EQ(file.inputs[0].name, declared.type.ends_with("Gpt") ? "tokens" : "images");
    EXPECT_EQ(file.inputs[0].shape.at(0), "B");
    ASSERT_EQ(file.outputs.size(), 1u);
    EXPECT_EQ(file.outputs[0].shape.at(0), "B");
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const OnnxTensor& t : file.initializers) shapes[t.name] = t.shape;
    for (const tessera_parameter& row : exported.model().parameters) {
      if (!shapes.contains(row.name)) continue;
      EXPECT_EQ(shapes[row.name], std::vector<std::int64_t>(row.shape, row.shape + row.rank)) << row.name;
    }
    exported.write(path);
    EXPECT_EQ(slurp(path), bytes) << "of equal parameters equal bytes";
    ++models;
  }
  EXPECT_GT(models, 30);
}

graph::Graph traced(std::string_view type) {
  for (const codegen::DeclaredModel& declared : declared_models())
    if (declared.type == type) return declared.trace("model");
  throw std::logic_error("no such model");
}

TEST(OnnxExport, LayersStandOneByOneUnderTheirNamesWithTheirOwnParameters) {
  const TemporaryFolder folder;
  const std::string path = (folder / "model.onnx").string();
  ExportedModel exported(traced("tessera::models::GoldenVit"), 2);
  exported.fill();
  exported.write(path);
  const std::string bytes = slurp(path);
  std::set<std::string> norms;
  for (const OnnxNode& n : read_onnx(bytes).nodes)
    if (n.op == "LayerNormalization") norms.insert(n.inputs.at(1));
  EXPECT_EQ(norms, (std::set<std::string>{"blocks.0.norm1.weight", "blocks.0.norm2.weight", "blocks.1.norm1.weight",
                                          "blocks.1.norm2.weight", "norm.weight"}));
}

TEST(OnnxExport, MetadataSaysWhatPicturesGoThroughAndWhatClassesAreCalled) {
  const TemporaryFolder folder;
  const std::string path = (folder / "model.onnx").string();
  ExportedModel exported(traced("tessera::models::GoldenVit"), 1);
  exported.fill();
  exported.write(path, {{.mean = {0.25, 0.5, 0.75}, .deviation = {0.1, 0.2, 0.3}, .crop = 0.875}, {"cat", "dog"}});
  const std::string bytes = slurp(path);
  EXPECT_EQ(read_onnx(bytes).metadata, (std::map<std::string, std::string>{{"class_names", "cat\ndog"},
                                                                           {"declaration_hash", "5eed"},
                                                                           {"input_crop", "0.875"},
                                                                           {"input_deviation.0", "0.1"},
                                                                           {"input_deviation.1", "0.2"},
                                                                           {"input_deviation.2", "0.3"},
                                                                           {"input_height", "32"},
                                                                           {"input_mean.0", "0.25"},
                                                                           {"input_mean.1", "0.5"},
                                                                           {"input_mean.2", "0.75"},
                                                                           {"input_width", "32"},
                                                                           {"model", "model"},
                                                                           {"outputs", "logits"}}));
}

TEST(OnnxExport, NumbersThatDoNotFitLieInAFileBesideIt) {
  const TemporaryFolder folder;
  const std::string path = (folder / "model.onnx").string();
  ExportedModel exported(traced("tessera::models::GoldenVit"), 2);
  exported.fill();
  exported.write(path);
  const std::string whole = slurp(path);
  const OnnxFile one = read_onnx(whole);
  EXPECT_FALSE(std::filesystem::exists(path + ".data"));
  exported.write(path, {}, whole.size());
  EXPECT_EQ(slurp(path), whole) << "of just as many bytes as it may have";
  exported.write(path, {}, whole.size() - 1);
  const std::string structure = slurp(path), numbers = slurp(path + ".data");
  const OnnxFile two = read_onnx(structure);
  EXPECT_EQ(two.nodes.size(), one.nodes.size());
  EXPECT_EQ(two.metadata, one.metadata);
  ASSERT_EQ(two.initializers.size(), one.initializers.size());
  std::size_t beside = 0;
  for (std::size_t i = 0; i < two.initializers.size(); ++i) {
    const OnnxTensor &t = two.initializers[i], &was = one.initializers[i];
    EXPECT_EQ(t.name, was.name);
    EXPECT_EQ(t.shape, was.shape);
    EXPECT_EQ(t.type, was.type);
    if (t.external.empty()) {  // a constant of the structure
      EXPECT_EQ(t.raw, was.raw);
      continue;
    }
    EXPECT_EQ(t.external.at("location"), "model.onnx.data");
    EXPECT_EQ(std::stoull(t.external.at("offset")), beside) << "one after the other";
    EXPECT_EQ(std::stoull(t.external.at("length")), was.raw.size());
    EXPECT_TRUE(t.raw.empty());
    EXPECT_EQ(numbers.substr(beside, was.raw.size()), was.raw) << t.name;
    beside += was.raw.size();
  }
  EXPECT_EQ(numbers.size(), beside);
  EXPECT_GT(beside, 0u);
}

}  // namespace
}  // namespace tessera::test
