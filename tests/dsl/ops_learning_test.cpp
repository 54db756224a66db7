// Operations with weights, labels or chance in them: embedding, dropout, cross entropy, positions, convolution.
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/dsl/ops_fixture.hpp"

namespace {

using namespace tessera;
using graph::Op;
using graph::Type;
using test::expect_near;

constexpr auto B = axis<"B">;
constexpr auto C = axis<"C", 2>;
constexpr auto D = axis<"D", 3>;
constexpr auto J = axis<"J", 3>;
constexpr auto V = axis<"V", 4>;
constexpr auto N = axis<"N", 3>;

class Learning : public test::Ops {
 protected:
  Tensor<B, J> logits = input<Tensor<B, J>>({1, 2, -1, 0.5, -0.5, 0.25});
  Tensor<B, J> probabilities = input<Tensor<B, J>>({0.2, 0.5, 0.3, 1, 0, 0});
  Tensor<B> labels = input<Tensor<B>>({2, 0}, Type::integer);
};

TEST_F(Learning, GatherTakesRows) {
  const auto table = counted<Tensor<V, C>>();
  const auto words = input<Tensor<B, N>>({3, 0, 1, 1, 2, 3}, Type::integer);
  const Tensor<B, N, C> rows = gather(table, words);
  EXPECT_EQ(run(rows), (Numbers{6, 7, 0, 1, 2, 3, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Learning, AnEmbeddingIsATableThatStartsNormal) {
  Embedding<V, D> embedding;
  bind(embedding, "words");
  const Tensor<B, D> rows = embedding(labels);
  EXPECT_EQ(node(rows).op, Op::gather);
  const graph::Node& weight = graph[embedding.weight.id];
  EXPECT_EQ(weight.name, "words.weight");
  EXPECT_EQ(weight.init.kind, graph::Init::Kind::normal);
  EXPECT_EQ(weight.init.a, 0);
  EXPECT_EQ(weight.init.b, 1);
  EXPECT_FALSE(weight.decay);
}

TEST_F(Learning, OneHotIsOneAtTheLabel) {
  const Tensor<B, J> rows = one_hot<J>(labels);
  EXPECT_EQ(run(rows), (Numbers{0, 0, 1, 1, 0, 0}));
}

TEST_F(Learning, NearestIsTheFirstOfEquallyNearCodes) {
  const auto codes = input<Tensor<V, C>>({1, 0, 1, 0, -1, 0, 0, 1});
  const auto rows = input<Tensor<B, N, C>>({1, 0, 0, 0, -2, 0, 0, 3, 0.75, 0.25, 0.25, 0.75});
  const Tensor<B, N> at = nearest(rows, codes);
  EXPECT_EQ(run(at), (Numbers{0, 0, 2, 3, 0, 3}));
  const Tensor<B, N> numbers = integers(at);
  EXPECT_EQ(node(numbers).type, Type::integer);
  const Tensor<B, N, C> taken = gather(codes, numbers);
  EXPECT_EQ(run(taken), (Numbers{1, 0, 1, 0, -1, 0, 0, 1, 1, 0, 0, 1}));
}

TEST_F(Learning, NoCodeIsNearestToWhatIsNoNumber) {
  const auto codes = input<Tensor<V, C>>({1, 0, 1, 0, -1, 0, 0, 1});
  const auto rows = input<Tensor<B, C>>({NAN, 1, 0, 1});
  EXPECT_EQ(run(nearest(rows, codes)), (Numbers{4, 3}));
}

TEST_F(Learning, AStoppedGradientChangesNoValue) {
  const auto x = scattered<Tensor<B, N, C>>();
  const Tensor<B, N, C> y = stop_gradient(x);
  EXPECT_EQ(node(y).op, Op::stop_gradient);
  EXPECT_EQ(run(y), numbers(x));
}

TEST_F(Learning, MaxPoolLeavesOutWhatFillsNoWindow) {
  const auto x =
      input<Tensor<B, 1_c, 3_c, 4_c>>({1, 2, 3, 4, 8, 7, 6, 5, 9, 9, 9, 9, -1, -2, -3, -4, -8, -7, -6, -5, 9, 9, 9, 9});
  const Tensor<B, 1_c, 1_c, 2_c> y = max_pool<2>(x);
  EXPECT_EQ(run(y), (Numbers{8, 6, -1, -3}));
}

TEST_F(Learning, SoftplusOverflowsNowhere) {
  const auto x = input<Tensor<B, N>>({-1000, -1, 0, 1, 90, 1000});
  expect_near(run(softplus(x)), {0, 0.31326168751822286, 0.69314718055994529, 1.3132616875182228, 90, 1000});
}

TEST_F(Learning, LeakyReluScalesWhatIsNegative) {
  const auto x = input<Tensor<B, N>>({-2, -0.5, 0, 0.5, 2, 3});
  expect_near(run(leaky_relu<0.2>(x)), {-0.4, -0.1, 0, 0.5, 2, 3});
}

TEST_F(Learning, DropoutChoosesForEveryNumber) {
  const auto x = counted<Tensor<B, N, C>>();
  const Tensor<B, N, C> y = dropout<0.25>(x);
  EXPECT_EQ(node(y).op, Op::dropout);
  EXPECT_EQ(node(y).value, 0.25);
  EXPECT_EQ(node(y).axes, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(run(y), run(x)) << "in evaluation it changes nothing";
}

TEST_F(Learning, DropPathChoosesForEverySample) {
  const auto x = counted<Tensor<B, N, C>>();
  const Tensor<B, N, C> y = DropPath<0.1>{}(x);
  EXPECT_EQ(node(y).op, Op::dropout);
  EXPECT_EQ(node(y).axes, std::vector<int>{0});
}

TEST_F(Learning, ARateOfZeroRecordsNothing) {
  const auto x = counted<Tensor<B, N>>();
  EXPECT_EQ(dropout<0.0>(x).id, x.id);
  EXPECT_EQ(Dropout<0.0>{}(x).id, x.id);
  EXPECT_EQ(drop_path<0.0>(x).id, x.id);
}

// torch.nn.functional.cross_entropy of PyTorch 2 in double precision, and nll_loss(p.log(), labels).
TEST_F(Learning, CrossEntropiesAreTorchs) {
  const Tensor<> exact = cross_entropy(logits, labels);
  const Tensor<> smoothed = cross_entropy<0.1>(logits, labels);
  const Tensor<> soft = cross_entropy(logits, probabilities);
  const Tensor<> likelihood = cross_entropy_of_probabilities(probabilities, labels);
  EXPECT_EQ(node(exact).op, Op::cross_entropy);
  expect_near(run(exact), {2.0564673919187366});
  expect_near(run(smoothed), {1.9939673919187366});
  expect_near(run(soft), {1.1064673919187367});
  expect_near(run(likelihood), {0.6019864021629681});
  expect_near(run(cross_entropy(logits, one_hot<J>(labels))), run(exact));
  expect_near(run(cross_entropy<0.0>(logits, labels)), run(exact));
}

TEST_F(Learning, LogSoftmaxIsTorchs) {
  const Tensor<B, J> rows = log_softmax<J>(logits);
  expect_near(run(rows), {-1.3490122167681864, -0.34901221676818633, -3.349012216768186, -0.763922567069287,
                          -1.763922567069287, -1.013922567069287});
}

// get_2d_sincos_pos_embed of facebookresearch/mae in double precision, for 2 rows of 3 columns: positions 1 and 5.
TEST_F(Learning, PositionsOfAGridAreThoseOfMae) {
  const Tensor<2_c * 3_c, 8_c> table = sinusoidal_2d<2_c, 3_c, 8_c>();
  const Numbers rows = run(table);
  expect_near({rows.begin() + 8, rows.begin() + 16},
              {0.8414709848078965, 0.009999833334166664, 0.5403023058681398, 0.9999500004166653, 0, 0, 1, 1});
  expect_near({rows.begin() + 40, rows.end()},
              {0.9092974268256817, 0.01999866669333308, -0.4161468365471424, 0.9998000066665778, 0.8414709848078965,
               0.009999833334166664, 0.5403023058681398, 0.9999500004166653});
}

TEST_F(Learning, InclusiveRatesAreThoseOfBeyer) {
  const auto table = sinusoidal_2d<1_c, 2_c, 12_c, true>();
  const Numbers rows = run(table);
  expect_near({rows.begin() + 12, rows.begin() + 15}, {std::sin(1.0), std::sin(0.01), std::sin(0.0001)});
  EXPECT_NE((sinusoidal_2d<1_c, 2_c, 12_c>().id), table.id);
  EXPECT_EQ((sinusoidal_2d<1_c, 2_c, 12_c, true>().id), table.id);
}

constexpr auto IH = axis<"IH", 11>;
constexpr auto IW = axis<"IW", 9>;

class Convolutions : public test::Ops {
 protected:
  /// The convolution of [B, C, IH, IW] by [D, C, kh, kw] as its definition says, with every index in a loop.
  Numbers by_definition(const Numbers& x, const Numbers& w, std::int64_t kh, std::int64_t kw, const Convolution& how,
                        std::int64_t oh, std::int64_t ow) const {
    Numbers y;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t d = 0; d < 3; ++d)
        for (std::int64_t i = 0; i < oh; ++i)
          for (std::int64_t j = 0; j < ow; ++j) {
            double sum = 0;
            for (std::int64_t c = 0; c < 2; ++c)
              for (std::int64_t p = 0; p < kh; ++p)
                for (std::int64_t q = 0; q < kw; ++q) {
                  const std::int64_t row = i * how.stride.down + p * how.dilation.down - how.padding.down;
                  const std::int64_t column = j * how.stride.across + q * how.dilation.across - how.padding.across;
                  if (row < 0 || row >= 11 || column < 0 || column >= 9) continue;
                  sum += x[static_cast<std::size_t>(((b * 2 + c) * 11 + row) * 9 + column)] *
                         w[static_cast<std::size_t>(((d * 2 + c) * kh + p) * kw + q)];
                }
            y.push_back(sum);
          }
    return y;
  }

  template <class Out, Convolution how, class KH, class KW>
  void expect_convolution(KH, KW) {
    const auto x = scattered<Tensor<B, C, IH, IW>>();
    const auto w = scattered<Tensor<D, C, KH{}, KW{}>>();
    const Out y = conv2d<how>(x, w);
    const std::vector<std::int64_t> size = test::extents(Out::shape.dims(), batch);
    expect_near(run(y),
                by_definition(numbers(x), numbers(w), KH::value.value(), KW::value.value(), how, size[2], size[3]));
  }
};

TEST_F(Convolutions, AreTheirDefinition) {
  expect_convolution<Tensor<B, D, 9_c, 7_c>, Convolution{}>(3_c, 3_c);
  expect_convolution<Tensor<B, D, IH, IW>, Convolution{.padding = 1}>(3_c, 3_c);
  expect_convolution<Tensor<B, D, 6_c, 5_c>, Convolution{.stride = 2, .padding = 1}>(3_c, 3_c);
  expect_convolution<Tensor<B, D, 3_c, 3_c>, Convolution{.stride = 4, .padding = 3}>(7_c, 7_c);
  expect_convolution<Tensor<B, D, IH, IW>, Convolution{}>(1_c, 1_c);
  expect_convolution<Tensor<B, D, 4_c, 3_c>, Convolution{.stride = 3}>(1_c, 1_c);
  expect_convolution<Tensor<B, D, 5_c, 3_c>, Convolution{.stride = {2, 3}}>(2_c, 3_c);
  expect_convolution<Tensor<B, D, 7_c, 4_c>, Convolution{.stride = {1, 2}, .padding = {0, 1}, .dilation = {2, 3}}>(3_c,
                                                                                                                   2_c);
  expect_convolution<Tensor<B, D, 2_c, 1_c>, Convolution{.stride = 5, .padding = 0}>(4_c, 9_c);
}

TEST_F(Convolutions, ThatTileTheImageAreOneRearrangementAnAxis) {
  constexpr auto G = axis<"G", 3>;
  constexpr auto P = axis<"P", 4>;
  const auto x = scattered<Tensor<B, C, G * P, 6_c * P>>();
  Conv2d<C, D, P, P, Convolution{.stride = 4}> map;
  bind(map, "map");
  give(map.weight);
  give(map.bias);
  const Tensor<B, D, G, 6_c> y = map(x);
  EXPECT_EQ(count(Op::rearrange), 2u);
  EXPECT_EQ(count(Op::slice) + count(Op::concat), 0u);

  PatchConvolution<C, D, P> tokens;
  tokens.weight.id = map.weight.id;
  tokens.bias.id = map.bias.id;
  expect_near(run(rearrange<"b d y x -> b (y x) d">(y)), run(tokens(x)));
}

TEST_F(Convolutions, AStrideThatDividesLeavesTheQuotient) {
  constexpr auto G = axis<"G", 3>;
  const auto x = scattered<Tensor<B, C, 2_c * G, 8_c>>();
  const auto w = scattered<Tensor<D, C, 3_c, 3_c>>();
  const Tensor<B, D, G, 4_c> y = conv2d<Convolution{.stride = 2, .padding = 1}>(x, w);
  EXPECT_EQ(node(y).op, Op::einsum);
}

TEST_F(Convolutions, HaveTorchsKeysAndStart) {
  Conv2d<C, D, 3_c, 2_c> map;
  bind(map, "map");
  const graph::Node& weight = graph[map.weight.id];
  EXPECT_EQ(weight.name, "map.weight");
  EXPECT_EQ(weight.shape, (Tensor<D, C, 3_c, 2_c>::shape.dims()));
  EXPECT_DOUBLE_EQ(weight.init.b, 1 / std::sqrt(12.0));
  EXPECT_TRUE(weight.decay);
  EXPECT_EQ(graph[map.bias.id].name, "map.bias");
  EXPECT_FALSE(graph[map.bias.id].decay);
  Conv2dWithoutBias<C, D, 3_c, 2_c> without;
  const auto x = scattered<Tensor<B, C, IH, IW>>();
  bind(without, "without");
  give(map.weight);
  give(map.bias);
  given["without.weight"] = given["map.weight"];
  const Numbers with_bias = run(map(x));
  const Numbers plain = run(without(x));
  const double bias = given["map.bias"].numbers[1];
  EXPECT_NEAR(with_bias[9 * 8], plain[9 * 8] + bias, 1e-12) << "the first number of the second of 3 channels of 9 x 8";
}

TEST_F(Learning, OperationsPassPoisonOn) {
  static_assert(std::is_same_v<decltype(gather(Poison{}, labels)), Poison>);
  static_assert(std::is_same_v<decltype(dropout<0.5>(Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(cross_entropy<0.1>(Poison{}, labels)), Poison>);
  static_assert(std::is_same_v<decltype(conv2d(Poison{}, Poison{})), Poison>);
  static_assert(std::is_same_v<decltype(one_hot<J>(Poison{})), Poison>);
}

}  // namespace
