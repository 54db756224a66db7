// A row of golden/onnx/MANIFEST.tsv, one of ONNX's operator tests, said in the DSL.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/graph/builder.hpp"
#include "dsl/tessera.hpp"

namespace tessera::test {

/// The batch. A tensor that begins with it takes its own first axis for the batch.
inline constexpr auto B = axis<"B">;

/// A tensor that a row takes.
struct RowInput {
  enum class Kind : std::uint8_t {
    images,     ///< begins with the batch; several lie one after the other in each image
    labels,     ///< integers
    parameter,  ///< has no batch
  };
  Kind kind = Kind::parameter;
  std::vector<Dim> shape;
  std::int64_t offset = 0;  ///< in reals: within the parameters, or within an image
};

/// A row as a graph. Its one output, "outputs", is for each image all that the row results in, one after the other.
struct RecordedRow {
  graph::Graph graph;
  std::vector<RowInput> inputs;           ///< in the row's order
  std::vector<std::vector<Dim>> results;  ///< shapes, in the row's order
  std::int64_t image_reals = 0;           ///< of one image
  std::int64_t parameter_reals = 0;       ///< of all; each begins on a multiple of 16
  std::int64_t output_reals = 0;          ///< of one image
};

/// Whether the shape begins with the batch.
bool has_batch(const std::vector<Dim>& shape);
/// How many numbers it has, for one image where it begins with the batch.
Dim size_of(const std::vector<Dim>& shape);
std::int64_t reals_of(const std::vector<Dim>& shape);

namespace detail {

/// How many numbers of an image the argument X takes.
template <class X>
Dim image_size_of() {
  if constexpr (!std::derived_from<X, Module> && !is_integers<X>)
    if (has_batch(X::shape.dims())) return size_of(X::shape.dims());
  return Dim::constant(0);
}

/// Turns what a declaration takes into nodes, and what it results in into the output.
class RowRecorder {
 public:
  /// `image`: the numbers of an image, for all arguments that begin with the batch.
  RowRecorder(const std::string& name, const Dim& image);

  graph::Builder& builder() { return builder_; }

  /// The next argument: a module, integers, a tensor that begins with the batch, or one that does not.
  template <class X>
  X argument() {
    if constexpr (std::derived_from<X, Module>) {
      X module;
      const std::size_t before = builder_.graph().nodes.size();
      bind(module, next_name());
      parameters_since(before);
      return module;
    } else {
      return X(leaf(X::shape.dims(), is_integers<X>));
    }
  }

  template <AnyTensor X>
  void results(const X& x) {
    result(node_of(x));
  }
  template <class X, std::size_t n>
  void results(const std::array<X, n>& x) {
    for (const X& each : x) results(each);
  }
  template <class... X>
  void results(const std::tuple<X...>& x) {
    std::apply([&](const X&... each) { (results(each), ...); }, x);
  }

  RecordedRow finish();
  /// The gradients of the sum of slope * result, a slope for each of the first `sloped` results: the slopes are inputs
  /// behind the row's own, and its results are the derivatives by its inputs, those of integers left out.
  RecordedRow finish_gradients(std::size_t sloped);

 private:
  std::string next_name() const;
  graph::NodeId leaf(std::vector<Dim> shape, bool integers);
  void parameters_since(std::size_t node);
  void result(graph::NodeId node);
  graph::NodeId flat(graph::NodeId node);

  RecordedRow row_;
  graph::Builder builder_{row_.graph};
  graph::NodeId images_ = graph::none;
  std::int64_t taken_ = 0;           ///< reals of an image
  std::vector<graph::NodeId> flat_;  ///< the results, as one axis each
  Dim output_ = Dim::constant(0);    ///< of an image
};

/// The gradients of the first `sloped` results in the place of the row where there are such.
template <class F, class... X>
RecordedRow record_row(F declaration, const std::string& name, std::tuple<X...>*, std::size_t sloped = 0) {
  RowRecorder recorder(name, (Dim::constant(0) + ... + image_size_of<X>()));
  const RecorderScope scope(recorder.builder());
  // Braces: the arguments become nodes in this order with every compiler.
  const std::tuple<X...> arguments{recorder.argument<X>()...};
  recorder.results(std::apply(declaration, arguments));
  return sloped ? recorder.finish_gradients(sloped) : recorder.finish();
}

}  // namespace detail

struct Row {
  std::string name;         ///< of the manifest, and a C identifier
  std::string declaration;  ///< as it stands in the source
  RecordedRow (*record)(const std::string& name);
};

/// The row of a declaration: a lambda of tensors and modules, whose parameters take the row's inputs in order. It
/// results in a tensor, or in an array or a tuple of them.
template <class F>
Row make_row(std::string name, std::string declaration, F) {
  return {std::move(name), std::move(declaration), [](const std::string& row) {
            using Arguments = typename tessera::detail::Signature<decltype(&F::operator())>::arguments;
            return detail::record_row(F{}, row, static_cast<Arguments*>(nullptr));
          }};
}

/// The rows that are covered.
std::vector<Row> onnx_rows();
/// What ONNX has no rows of: tests/golden/operators.safetensors.
std::vector<Row> pytorch_rows();
/// Both, one after the other.
std::vector<RecordedRow> recorded_rows();
/// The parts of onnx_rows().
std::vector<Row> attention_rows();
std::vector<Row> contraction_rows();
std::vector<Row> elementwise_rows();
std::vector<Row> layer_norm_rows();
std::vector<Row> reduction_rows();
std::vector<Row> structure_rows();

/// A row that is not covered, and why.
struct UncoveredRow {
  std::string name, reason;
};
std::vector<UncoveredRow> uncovered_onnx_rows();

}  // namespace tessera::test

/// TESSERA_ROW(test_softmax_axis_1, [](Tensor<B, 4_c, 5_c> x) { return softmax<1>(x); })
#define TESSERA_ROW(name, ...) ::tessera::test::make_row(#name, #__VA_ARGS__, __VA_ARGS__)
