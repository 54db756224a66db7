#include "tests/onnx/row.hpp"

#include <numeric>

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

void RowRecorder::result(NodeId node) {
  const std::vector<Dim> shape = builder_.shape(node);
  row_.results.push_back(shape);
  std::vector<Dim> flat{size_of(shape)};
  if (has_batch(shape)) flat.insert(flat.begin(), shape.front());
  output_ = output_ + size_of(shape);
  flat_.push_back(reshaped(builder_, node, flat));
}

RecordedRow RowRecorder::finish() {
  Builder& b = builder_;
  const int last = has_batch(b.shape(flat_.front())) ? 1 : 0;
  row_.output_reals = output_.value();
  NodeId outputs = flat_.size() == 1 ? flat_.front() : b.concat(flat_, last, output_);
  if (!last) outputs = b.broadcast(outputs, {Dim::axis("B"), output_}, {1});
  row_.graph.outputs.push_back({graph::Output::Kind::value, "outputs", outputs, graph::none});
  return std::move(row_);
}

}  // namespace detail

std::vector<Row> onnx_rows() {
  std::vector<Row> all;
  for (const auto& part :
       {attention_rows, contraction_rows, elementwise_rows, layer_norm_rows, reduction_rows, structure_rows})
    for (Row& row : part()) all.push_back(std::move(row));
  return all;
}

std::vector<UncoveredRow> uncovered_onnx_rows() {
  return {{"test_split_zero_size_splits_opset13", "an axis has at least one position"}};
}

}  // namespace tessera::test
