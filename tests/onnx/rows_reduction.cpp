// Fewer numbers: ReduceMax, ReduceMean, ReduceSum, ReduceSumSquare.
#include "tests/onnx/row.hpp"

namespace tessera::test {

std::vector<Row> reduction_rows() {
  return {
      TESSERA_ROW(test_reduce_max_default_axes_keepdims_random,
                  [](Tensor<3_c, 2_c, 2_c> x) { return reduce<"i j k -> 1 1 1", "max">(x); }),
      TESSERA_ROW(test_reduce_max_do_not_keepdims_random, [](Tensor<B, 2_c, 2_c> x) { return max<1>(x); }),
      TESSERA_ROW(test_reduce_max_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reduce<"b i j -> b 1 j", "max">(x); }),
      TESSERA_ROW(test_reduce_max_negative_axes_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reshape<B, 1_c, 2_c>(max<-2>(x)); }),

      TESSERA_ROW(test_reduce_mean_default_axes_keepdims_random,
                  [](Tensor<3_c, 2_c, 2_c> x) { return reduce<"i j k -> 1 1 1", "mean">(x); }),
      TESSERA_ROW(test_reduce_mean_do_not_keepdims_random, [](Tensor<B, 2_c, 2_c> x) { return mean<1>(x); }),
      TESSERA_ROW(test_reduce_mean_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reduce<"b i j -> b 1 j", "mean">(x); }),
      TESSERA_ROW(test_reduce_mean_negative_axes_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reshape<B, 1_c, 2_c>(mean<-2>(x)); }),
      TESSERA_ROW(test_operator_reduced_mean, [](Tensor<B, 2_c, 3_c, 4_c> x) { return mean<2>(x); }),

      TESSERA_ROW(test_reduce_sum_default_axes_keepdims_random,
                  [](Tensor<3_c, 2_c, 2_c> x) { return reshape<1_c, 1_c, 1_c>(sum(x)); }),
      TESSERA_ROW(test_reduce_sum_do_not_keepdims_random, [](Tensor<B, 2_c, 2_c> x) { return sum<1>(x); }),
      TESSERA_ROW(test_reduce_sum_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reduce<"b i j -> b 1 j", "sum">(x); }),
      TESSERA_ROW(test_reduce_sum_negative_axes_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reshape<B, 1_c, 2_c>(sum<-2>(x)); }),
      TESSERA_ROW(test_operator_reduced_sum, [](Tensor<B, 2_c, 3_c, 4_c> x) { return sum<2>(x); }),

      TESSERA_ROW(test_reduce_sum_square_default_axes_keepdims_random,
                  [](Tensor<3_c, 2_c, 2_c> x) { return reduce<"i j k -> 1 1 1", "sum">(pow<2>(x)); }),
      TESSERA_ROW(test_reduce_sum_square_do_not_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return sum<1>(pow<2>(x)); }),
      TESSERA_ROW(test_reduce_sum_square_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reduce<"b i j -> b 1 j", "sum">(pow<2>(x)); }),
      TESSERA_ROW(test_reduce_sum_square_negative_axes_keepdims_random,
                  [](Tensor<B, 2_c, 2_c> x) { return reshape<B, 1_c, 2_c>(sum<-2>(x * x)); }),
  };
}

}  // namespace tessera::test
