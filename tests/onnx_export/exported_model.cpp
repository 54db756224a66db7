#include "tests/onnx_export/exported_model.hpp"

#include <algorithm>
#include <cmath>

#include "codegen/emit/onnx.hpp"
#include "codegen/passes/flops.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/passes/subgraph.hpp"
#include "runtime/matching.hpp"
#include "runtime/onnx.hpp"
#include "runtime/philox.hpp"

namespace tessera::test {

using graph::Init;
using graph::Node;
using graph::Op;

ExportedModel::ExportedModel(graph::Graph declared, int layers) : declared_(std::move(declared)) {
  for (graph::Region& region : declared_.regions) region.count = std::min(region.count, layers);
  declared_ = codegen::passed(declared_, codegen::declaration_passes());
  forward_ = codegen::subgraph(declared_, {"outputs"});
  text_ = codegen::onnx_text(declared_);
  std::int64_t offset = 0;
  for (const Node& n : declared_.nodes) {
    if (n.op == Op::input && n.name == "images" && n.shape.size() == 4)
      for (std::size_t d = 0; d < 3; ++d) model_.image_shape[d] = n.shape[d + 1].value();
    if (n.op != Op::parameter) continue;
    const bool repeats = n.name.find('{') != std::string::npos;
    for (int layer = 0; layer < (repeats ? declared_.regions[static_cast<std::size_t>(n.region)].count : 1); ++layer) {
      tessera_parameter row{};
      row.name = names_.emplace_back(layer_name(n.name, layer)).c_str();
      row.rank = static_cast<std::int32_t>(n.shape.size());
      for (std::size_t d = 0; d < n.shape.size(); ++d) row.shape[d] = n.shape[d].value();
      row.offset = offset;
      offset += runtime::elements(runtime::shape_of(row));
      rows_.push_back(row);
      starts_.push_back(n.init);
    }
  }
  model_.name = declared_.name;
  model_.declaration_hash = 0x5eed;
  model_.parameters = rows_;
  model_.parameter_floats = offset;
  model_.onnx = text_.c_str();
}

std::int64_t ExportedModel::work() const {
  const graph::Graph inference = codegen::passed(declared_, codegen::program_passes(codegen::ProgramKind::forward));
  return codegen::flops(codegen::passed(inference, codegen::primitive_passes())).at(1) / 2;
}

double ExportedModel::codes() const {
  std::int64_t fewest = INT64_MAX;
  for (const Node& n : forward_.nodes)
    if (n.op == Op::gather) fewest = std::min(fewest, forward_[n.operands[0]].shape[0].value());
  return static_cast<double>(fewest);
}

void ExportedModel::fill() {
  numbers_.assign(static_cast<std::size_t>(model_.parameter_floats), 0);
  runtime::Random random(7, 0, 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Init& start = starts_[r];
    float* const first = numbers_.data() + rows_[r].offset;
    for (float* p = first; p != first + runtime::elements(runtime::shape_of(rows_[r])); ++p)
      *p = static_cast<float>(start.kind == Init::Kind::uniform  ? random.uniform(start.a, start.b)
                              : start.kind == Init::Kind::normal ? start.a + start.b * random.bell()
                                                                 : start.a + 0.2 * random.bell());
  }
}

void ExportedModel::fill(const Arrays& given) {
  numbers_.assign(static_cast<std::size_t>(model_.parameter_floats), 0);
  for (const tessera_parameter& row : rows_) {
    const std::vector<double>& numbers = given.at(row.name).numbers;
    std::transform(numbers.begin(), numbers.end(), numbers_.begin() + row.offset,
                   [](double number) { return static_cast<float>(number); });
  }
  for (const Node& n : forward_.nodes)
    if (n.op == Op::input) inputs_[n.name] = given.at(n.name);
}

void ExportedModel::write(const std::string& path, const runtime::Usage& usage, std::uint64_t limit) const {
  runtime::export_onnx(path, model_, numbers_.data(), usage, limit);
}

Arrays ExportedModel::answers(std::int64_t batch) const {
  Arrays given;
  for (const tessera_parameter& row : rows_) {
    const runtime::Shape shape = runtime::shape_of(row);
    const float* const first = numbers_.data() + row.offset;
    given[row.name] = {shape, {first, first + runtime::elements(shape)}};
  }
  Arrays answered;
  runtime::Random random(11, 0, 0);
  for (const Node& n : forward_.nodes) {
    if (n.op != Op::input) continue;
    Array& input = answered[n.name];
    input.shape = extents(n.shape, batch);
    if (inputs_.contains(n.name)) {
      input.numbers = inputs_.at(n.name).numbers;
    } else {
      input.numbers.resize(static_cast<std::size_t>(runtime::elements(input.shape)));
      const bool tokens = n.type == graph::Type::integer ||
                          std::any_of(forward_.nodes.begin(), forward_.nodes.end(), [&](const Node& reader) {
                            return reader.op == Op::integers && &forward_[reader.operands[0]] == &n;
                          });
      for (double& number : input.numbers) number = tokens ? std::floor(random.uniform(0, codes())) : random.bell();
    }
    for (double& number : input.numbers) number = static_cast<float>(number);
    given[n.name] = input;
  }
  answered["outputs"] = interpret(forward_, batch, given).at("outputs");
  return answered;
}

}  // namespace tessera::test
