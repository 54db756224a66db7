// LayerNormalization, and its two further results: the mean, and one over the standard deviation.
#include <tuple>

#include "tests/onnx/row.hpp"

namespace tessera::test {

namespace {

/// The norm of x, and the mean and 1 / sqrt(variance + epsilon) of what it goes over. `flat` is x with the axes that
/// the norm goes over as one, the last; `Kept` is the pattern that puts an axis of size 1 for each of them.
template <fixed_string Kept, class Norm, AnyTensor X, AnyTensor Flat>
auto norm_and_statistics(const Norm& norm, const X& x, const Flat& flat) {
  constexpr auto length = typename Flat::dims::template at<Flat::shape.rank - 1>{};
  const auto center = mean<-1>(flat);
  const auto deviation = flat - repeat<"... -> ... i">(center, "i"_is(length));
  const auto inverse = 1.0 / sqrt(mean<-1>(deviation * deviation) + norm.epsilon);
  return std::tuple{norm(x), rearrange<Kept>(center), rearrange<Kept>(inverse)};
}

}  // namespace

std::vector<Row> layer_norm_rows() {
  return {
      TESSERA_ROW(test_layer_normalization_2d_axis0,
                  [](Tensor<3_c, 4_c> x, LayerNorm<3_c, 4_c> norm) {
                    return norm_and_statistics<"... -> ... 1 1">(norm, x, reshape<12_c>(x));
                  }),
      TESSERA_ROW(
          test_layer_normalization_2d_axis_negative_1,
          [](Tensor<B, 4_c> x, LayerNorm<4_c> norm) { return norm_and_statistics<"... -> ... 1">(norm, x, x); }),
      TESSERA_ROW(test_layer_normalization_3d_axis0_epsilon,
                  [](Tensor<2_c, 3_c, 5_c> x, LayerNorm<2_c, 3_c, 5_c> norm) {
                    norm.epsilon = 0.1;
                    return norm_and_statistics<"... -> ... 1 1 1">(norm, x, reshape<30_c>(x));
                  }),
      TESSERA_ROW(test_layer_normalization_3d_axis2_epsilon,
                  [](Tensor<B, 3_c, 5_c> x, LayerNorm<5_c> norm) {
                    norm.epsilon = 0.1;
                    return norm_and_statistics<"... -> ... 1">(norm, x, x);
                  }),
      TESSERA_ROW(test_layer_normalization_3d_axis_negative_2_epsilon,
                  [](Tensor<B, 3_c, 5_c> x, LayerNorm<3_c, 5_c> norm) {
                    norm.epsilon = 0.1;
                    return norm_and_statistics<"... -> ... 1 1">(norm, x, reshape<B, 15_c>(x));
                  }),
      TESSERA_ROW(test_layer_normalization_4d_axis0,
                  [](Tensor<2_c, 3_c, 4_c, 5_c> x, LayerNorm<2_c, 3_c, 4_c, 5_c> norm) {
                    return norm_and_statistics<"... -> ... 1 1 1 1">(norm, x, reshape<120_c>(x));
                  }),
      TESSERA_ROW(test_layer_normalization_4d_axis2,
                  [](Tensor<B, 3_c, 4_c, 5_c> x, LayerNorm<4_c, 5_c> norm) {
                    return norm_and_statistics<"... -> ... 1 1">(norm, x, reshape<B, 3_c, 20_c>(x));
                  }),
      TESSERA_ROW(test_layer_normalization_4d_axis_negative_1,
                  [](Tensor<B, 3_c, 4_c, 5_c> x, LayerNorm<5_c> norm) {
                    return norm_and_statistics<"... -> ... 1">(norm, x, x);
                  }),
      TESSERA_ROW(test_layer_normalization_4d_axis_negative_3,
                  [](Tensor<B, 3_c, 4_c, 5_c> x, LayerNorm<3_c, 4_c, 5_c> norm) {
                    return norm_and_statistics<"... -> ... 1 1 1">(norm, x, reshape<B, 60_c>(x));
                  }),
      TESSERA_ROW(test_layer_normalization_default_axis,
                  [](Tensor<B, 3_c, 4_c, 5_c> x, LayerNorm<5_c> norm) {
                    return norm_and_statistics<"... -> ... 1">(norm, x, x);
                  }),
  };
}

}  // namespace tessera::test
