// The declared models that are no classifiers, as they are declared: their numbers are PyTorch's in the interpreter
// (tests/models/worked_examples_test.cpp), and here the generated kernels' are the interpreter's.
#include "dsl/tessera.hpp"
#include "models/scalar_graph.hpp"
#include "models/self_attention_2d.hpp"
#include "models/sentence_attention.hpp"
#include "tests/kernels/generated_cases.hpp"

namespace tessera::test {

namespace {

/// Records the model's parameters, with numbers.
template <class Model>
void declare(Sketch& s, Model& model, const std::string& path = "") {
  std::size_t node = s.graph.nodes.size();
  bind(model, path);
  for (; node < s.graph.nodes.size(); ++node) {
    Array& numbers = s.given[s.graph.nodes[node].name];
    std::size_t count = 1;
    for (const Dim& dim : s.graph.nodes[node].shape) {
      numbers.shape.push_back(dim.value());
      count *= static_cast<std::size_t>(dim.value());
    }
    while (numbers.numbers.size() < count) numbers.numbers.push_back(s.random(-0.5, 0.5));
  }
}

/// For models without a batch: each image times what the model gives.
void weighted_by_images(Sketch& s, graph::NodeId node) {
  std::vector<Dim> shape = s.b.shape(node);
  std::vector<int> axes;
  for (int d = 1; d <= static_cast<int>(shape.size()); ++d) axes.push_back(d);
  shape.insert(shape.begin(), s.B);
  weighted_outputs(s, s.b.multiply(s.input("images", shape), s.b.broadcast(node, shape, axes)));
}

void self_attention_2d(Sketch& s) {
  using Model = models::SelfAttention2d<{.channels = 7, .height = 3, .width = 2, .heads = 2, .head = 4, .value = 3}>;
  using Maps = Tensor<Model::B, Model::D, Model::FH, Model::FW>;
  const RecorderScope scope(s.b);
  Model model;
  declare(s, model);
  const Maps maps(s.input("images", Maps::shape.dims()));
  weighted_outputs(s, node_of(model(maps)));
}

void sentence_attention(Sketch& s) {
  using Model = models::SentenceAttention;
  using Words = Tensor<Model::T, Model::E>;
  const RecorderScope scope(s.b);
  Model model;
  declare(s, model);
  const Words words(s.parameter("x", Words::shape.dims()));
  weighted_by_images(s, node_of(model(words)));
}

void scalar_graph(Sketch& s) {
  const RecorderScope scope(s.b);
  models::ScalarGraph model;
  declare(s, model);
  // An output has an axis beside the batch.
  const graph::NodeId e = s.b.broadcast(node_of(model()), {Dim::constant(1)}, {});
  weighted_by_images(s, e);
}

/// A tensor of the DSL whose first axis is the batch.
template <class X>
X images(Sketch& s) {
  return X(s.input("images", X::shape.dims()));
}
template <class X>
X parameter(Sketch& s, const char* name) {
  return X(s.parameter(name, X::shape.dims()));
}

constexpr auto B = axis<"B">;
constexpr auto H = axis<"H", 2>;
constexpr auto GH = axis<"GH", 2>;
constexpr auto GW = axis<"GW", 3>;
constexpr auto T = axis<"T", 1_c + GH * GW>;  // a token before the patches
constexpr auto K = axis<"K", 8>;

void rotary_positions(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, H, T, K>>(s);
  const auto shifted = x + parameter<Tensor<H, T, K>>(s, "shift");
  const auto neighbours = rope<Rope{.rows = 5, .columns = 4}, GH, GW>(shifted);
  const auto halves = rope<Rope{.pairs = RopePairs::halves, .places = RopePlaces::centres}, GH, GW>(shifted);
  const auto frequencies = parameter<Tensor<2_c, H, 4_c>>(s, "frequencies");
  const auto learned = rope_mixed<Rope{.columns_first = true}, GH, GW>(halves, frequencies);
  weighted_outputs(s, node_of(einsum<"b h i k, b h j k -> b h i j">(neighbours, learned)));
}

void relative_positions(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto scores = images<Tensor<B, H, T, T>>(s);
  const auto among = relative_position_bias<GH, GW, 1_c>(parameter<Tensor<15_c, H>>(s, "among"));
  const auto all = relative_position_bias<GH, GW, 1_c>(parameter<Tensor<18_c, H>>(s, "all"));
  weighted_outputs(s, node_of(softmax<-1>(scores + (among + all))));
}

void rms_norm(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, T, K>>(s);
  RmsNorm<K> norm(0.1);
  declare(s, norm);
  weighted_outputs(s, node_of(quick_gelu(norm(x + parameter<Tensor<T, K>>(s, "shift")))));
}

/// What VQGAN's encoder and discriminator are made of: a convolution that halves, group norm, activations, pooling.
void feature_maps(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 4_c, 5_c, 6_c>>(s);
  Conv2d<4_c, 6_c, 3_c, 3_c, Convolution{.stride = 2, .padding_end = 1}> half;
  GroupNorm<3_c, 6_c> norm(0.1);
  declare(s, half);
  declare(s, norm, "norm");
  const auto halved = norm(half(x + parameter<Tensor<4_c, 5_c, 6_c>>(s, "shift")));
  const auto wide = repeat<"b c y x -> b c (y 2) (x 2)">(silu(leaky_relu<0.2>(halved)) + softplus(halved));
  weighted_outputs(s, node_of(max_pool<2>(wide * parameter<Tensor<6_c, 4_c, 6_c>>(s, "slopes"))));
}

/// Rows of windows that are columns of a GEMM, some way apart and not.
void convolutions(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 3_c, 9_c, 18_c>>(s);
  Conv2d<3_c, 10_c, 3_c, 3_c, Convolution{.padding = 1}> wide;
  Conv2d<10_c, 8_c, 3_c, 2_c, Convolution{.padding = {2, 0}, .dilation = 2}> apart;
  Conv2d<8_c, 5_c, 1_c, 1_c> mix;
  declare(s, wide, "wide");
  declare(s, apart, "apart");
  declare(s, mix, "mix");
  weighted_outputs(s,
                   node_of(mix(silu(apart(leaky_relu<0.2>(wide(x + parameter<Tensor<3_c, 9_c, 18_c>>(s, "shift"))))))));
}

/// What a DPT head is made of: pixels that become squares, and maps that are enlarged and reduced to any size.
void resized_maps(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 3_c, 4_c, 5_c>>(s);
  ConvTranspose2d<3_c, 6_c, 2_c> squares;
  Conv2dWithoutBias<6_c, 4_c, 3_c, 3_c, Convolution{.padding = 1}> mix;
  declare(s, squares, "squares");
  declare(s, mix, "mix");
  const auto large = resize<13_c, 19_c>(mix(relu(squares(x + parameter<Tensor<3_c, 4_c, 5_c>>(s, "shift")))));
  weighted_outputs(s, node_of(resize<5_c, 19_c>(large * parameter<Tensor<4_c, 13_c, 19_c>>(s, "slopes"))));
}

/// Maps whose lines fill vectors so badly that lanes run along output channels: part of a vector, lines of one tile.
void convolution_of_narrow_maps(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 16_c, 5_c, 7_c>>(s);
  Conv2d<16_c, 20_c, 3_c, 3_c, Convolution{.padding = 1}> part;
  declare(s, part, "part");
  weighted_outputs(s, node_of(silu(part(x + parameter<Tensor<16_c, 5_c, 7_c>>(s, "shift")))));
}

/// The same with several vectors, lines of more tiles, what a tile's transpose is stored with, and every other line of
/// windows.
void convolutions_of_narrow_maps(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 16_c, 5_c, 7_c>>(s);
  Conv2d<16_c, 48_c, 3_c, 3_c, Convolution{.padding = {1, 4}}> longer;
  Conv2d<48_c, 16_c, 3_c, 3_c, Convolution{.stride = 2, .padding = 1}> half;
  declare(s, longer, "longer");
  declare(s, half, "half");
  const auto hidden = longer(x + parameter<Tensor<16_c, 5_c, 7_c>>(s, "shift"));
  weighted_outputs(s, node_of(half(silu(hidden) * parameter<Tensor<48_c, 5_c, 13_c>>(s, "slopes"))));
}

/// Convolutions of so many channels that their weights' gradients copy parts of the map: every other line of windows,
/// taps some way apart, and a kernel of one number.
void wide_convolutions(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto x = images<Tensor<B, 16_c, 8_c, 10_c>>(s);
  Conv2d<16_c, 16_c, 2_c, 2_c, Convolution{.padding = 1, .dilation = 2}> apart;
  Conv2d<16_c, 20_c, 1_c, 1_c> mix;
  Conv2d<20_c, 4_c, 3_c, 3_c, Convolution{.stride = {2, 1}, .padding_end = 1}> half;
  declare(s, apart, "apart");
  declare(s, mix, "mix");
  declare(s, half, "half");
  const auto mixed = silu(mix(silu(apart(x))));
  weighted_outputs(s, node_of(half(mixed)));
}

/// The code nearest to each row, times the row, so that both have gradients.
void nearest_codes(Sketch& s) {
  const RecorderScope scope(s.b);
  const auto rows = images<Tensor<B, T, K>>(s) + parameter<Tensor<T, K>>(s, "shift");
  const auto codes = parameter<Tensor<11_c, K>>(s, "codes");
  weighted_outputs(s, node_of(gather(codes, integers(nearest(rows, codes))) * rows));
}

}  // namespace

std::vector<GeneratedCase> model_cases() {
  return {{"feature_maps", feature_maps},
          {"convolutions", convolutions},
          {"convolution_of_narrow_maps", convolution_of_narrow_maps},
          {"convolutions_of_narrow_maps", convolutions_of_narrow_maps},
          {"wide_convolutions", wide_convolutions},
          {"nearest_codes", nearest_codes},
          {"rotary_positions", rotary_positions},
          {"relative_positions", relative_positions},
          {"rms_norm", rms_norm},
          {"self_attention_2d", self_attention_2d},
          {"sentence_attention", sentence_attention},
          {"resized_maps", resized_maps},
          {"scalar_graph", scalar_graph}};
}

}  // namespace tessera::test
