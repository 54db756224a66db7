#include "tests/onnx/row.hpp"

#include <algorithm>
#include <numeric>

#include "codegen/passes/differentiate.hpp"
#include "dsl/unused.hpp"

namespace tessera::test {

using graph::Builder;
using graph::NodeId;

bool has_batch(const std::vector<Dim>& shape) { return !shape.empty() && !shape.front().known(); }

Dim size_of(const std::vector<Dim>& shape) {
  Dim size = Dim::constant(1);
  for (const Dim& dim : shape)
    if (dim.known()) size = size * dim;
  return size;
}

std::int64_t reals_of(const std::vector<Dim>& shape) { return size_of(shape).value(); }

namespace detail {

namespace {

/// From one shape to another of as many numbers in the same order, of which one has the batch and a single dim more.
NodeId reshaped(Builder& b, NodeId node, const std::vector<Dim>& to) {
  const bool flattens = to.size() == (has_batch(to) ? 2U : 1U);
  const std::vector<Dim> many = flattens ? b.shape(node) : to;
  graph::Rearrangement r;
  r.atoms = many;
  std::vector<std::vector<int>> apart, together;
  if (has_batch(to)) together.push_back({0});
  together.emplace_back();
  for (int atom = 0; atom < static_cast<int>(many.size()); ++atom) {
    apart.push_back({atom});
    if (atom || !has_batch(to)) together.back().push_back(atom);
  }
  r.from = flattens ? apart : together;
  r.to = flattens ? together : apart;
  return b.rearrange(node, std::move(r), to);
}

}  // namespace

RowRecorder::RowRecorder(const std::string& name, const Dim& image) {
  row_.graph.name = name;
  row_.image_reals = image.value();
  if (row_.image_reals) images_ = builder_.input("images", {Dim::axis("B"), image});
}

std::string RowRecorder::next_name() const { return row_.graph.name + "." + std::to_string(row_.inputs.size()); }

NodeId RowRecorder::leaf(std::vector<Dim> shape, bool integers) {
  if (integers) {
    row_.inputs.push_back({RowInput::Kind::labels, shape, 0});
    return builder_.input("labels", std::move(shape), graph::Type::integer);
  }
  if (!has_batch(shape)) {
    const std::size_t before = row_.graph.nodes.size();
    const NodeId node = builder_.parameter(next_name(), std::move(shape), {}, false);
    parameters_since(before);
    return node;
  }
  row_.inputs.push_back({RowInput::Kind::images, shape, taken_});
  const NodeId part = builder_.slice(images_, 1, taken_, size_of(shape));
  taken_ += reals_of(shape);
  return reshaped(builder_, part, shape);
}

void RowRecorder::parameters_since(std::size_t node) {
  for (; node < row_.graph.nodes.size(); ++node) {
    const graph::Node& n = row_.graph.nodes[node];
    row_.inputs.push_back({RowInput::Kind::parameter, n.shape, row_.parameter_reals});
    row_.parameter_reals += (reals_of(n.shape) + 15) / 16 * 16;
  }
}

NodeId RowRecorder::flat(NodeId node) {
  const std::vector<Dim> shape = builder_.shape(node);
  std::vector<Dim> flat{size_of(shape)};
  if (has_batch(shape)) flat.insert(flat.begin(), shape.front());
  return reshaped(builder_, node, flat);
}

void RowRecorder::result(NodeId node) {
  const std::vector<Dim> shape = builder_.shape(node);
  row_.results.push_back(shape);
  output_ = output_ + size_of(shape);
  flat_.push_back(flat(node));
}

RecordedRow RowRecorder::finish() {
  Builder& b = builder_;
  row_.output_reals = output_.value();
  const bool images = std::any_of(flat_.begin(), flat_.end(), [&](NodeId node) { return has_batch(b.shape(node)); });
  for (NodeId& node : flat_)  // beside what is of an image, the same for all
    if (images && !has_batch(b.shape(node))) node = b.broadcast(node, {Dim::axis("B"), b.shape(node)[0]}, {1});
  NodeId outputs = flat_.size() == 1 ? flat_.front() : b.concat(flat_, images ? 1 : 0, output_);
  if (!images) outputs = b.broadcast(outputs, {Dim::axis("B"), output_}, {1});
  row_.graph.outputs = {{graph::Output::Kind::value, "outputs", outputs, graph::none}};
  return std::move(row_);
}

RecordedRow RowRecorder::finish_gradients(std::size_t sloped) {
  Builder& b = builder_;
  const std::size_t own = row_.inputs.size();
  NodeId loss = graph::none;
  for (std::size_t k = 0; k < sloped; ++k) {
    const std::vector<Dim> shape = row_.results.at(k);
    // Slopes of images lie behind what the row takes of an image.
    if (has_batch(shape)) b.graph()[images_].shape[1] = Dim::constant(taken_ + reals_of(shape));
    const NodeId slope = flat(leaf(shape, false));
    std::vector<int> all{0};
    if (has_batch(shape)) all.push_back(1);
    const NodeId sum = b.reduce(graph::Op::reduce_sum, b.multiply(flat_[k], slope), all);
    loss = loss == graph::none ? sum : b.add(loss, sum);
  }
  // What the results do not depend on has a derivative of 0, and is no reason to refuse them.
  const std::vector<bool> reached = tessera::detail::reached(b.graph(), {loss}, true);
  for (NodeId id = 0; id < static_cast<NodeId>(reached.size()); ++id) {
    if (b.graph()[id].op != graph::Op::parameter) continue;
    b.graph()[id].trained = true;  // a row's derivatives are by all inputs, buffers among them
    if (reached[static_cast<std::size_t>(id)]) continue;
    std::vector<int> all(b.shape(id).size());
    std::iota(all.begin(), all.end(), 0);
    const NodeId sum = all.empty() ? id : b.reduce(graph::Op::reduce_sum, id, all);
    loss = b.add(loss, b.multiply(sum, b.constant(0)));
  }
  row_.image_reals = taken_;
  row_.graph.outputs = {{graph::Output::Kind::loss, "loss", loss, graph::none}};
  row_.graph = codegen::differentiate(row_.graph, true);
  const std::vector<graph::Output> gradients = std::move(row_.graph.outputs);
  row_.results.clear();
  flat_.clear();
  output_ = Dim::constant(0);
  NodeId parameter = 0;
  for (std::size_t i = 0; i < own; ++i) {
    const RowInput input = row_.inputs[i];
    if (input.kind == RowInput::Kind::labels) continue;
    const bool images = input.kind == RowInput::Kind::images;
    if (!images)
      while (row_.graph[parameter].op != graph::Op::parameter) ++parameter;
    const NodeId of = images ? images_ : parameter++;
    const auto gradient = std::find_if(gradients.begin(), gradients.end(), [&](const graph::Output& o) {
      return o.kind == graph::Output::Kind::gradient && o.parameter == of;
    });
    NodeId node = gradient->node;
    if (images) node = reshaped(b, b.slice(node, 1, input.offset, size_of(input.shape)), input.shape);
    result(node);
  }
  return finish();
}

}  // namespace detail

std::vector<Row> onnx_rows() {
  std::vector<Row> all;
  for (const auto& part :
       {attention_rows, contraction_rows, elementwise_rows, layer_norm_rows, reduction_rows, structure_rows})
    for (Row& row : part()) all.push_back(std::move(row));
  return all;
}

std::vector<RecordedRow> recorded_rows() {
  std::vector<RecordedRow> all;
  for (const auto& part : {onnx_rows, pytorch_rows})
    for (const Row& row : part()) all.push_back(row.record(row.name));
  return all;
}

std::vector<UncoveredRow> uncovered_onnx_rows() {
  return {{"test_split_zero_size_splits_opset13", "an axis has at least one position"}};
}

}  // namespace tessera::test
