// Sums of products: Conv, Einsum, Gemm, MatMul.
#include "tests/onnx/row.hpp"

namespace tessera::test {

std::vector<Row> contraction_rows() {
  return {
      TESSERA_ROW(test_basic_conv_without_padding,
                  [](Tensor<B, 1_c, 5_c, 5_c> x, Tensor<1_c, 1_c, 3_c, 3_c> w) { return conv2d(x, w); }),
      TESSERA_ROW(test_Conv2d_no_bias,
                  [](Tensor<B, 3_c, 6_c, 5_c> x, Conv2dWithoutBias<3_c, 4_c, 3_c, 2_c> f) { return f(x); }),

      TESSERA_ROW(test_einsum_batch_matmul,
                  [](Tensor<B, 2_c, 3_c> x, Tensor<B, 3_c, 4_c> y) { return einsum<"b i j, b j k -> b i k">(x, y); }),
      TESSERA_ROW(test_einsum_scalar, [](Tensor<> x) { return einsum<"->">(x); }),
      TESSERA_ROW(test_einsum_transpose, [](Tensor<3_c, 4_c> x) { return einsum<"i j -> j i">(x); }),

      TESSERA_ROW(test_gemm_alpha,
                  [](Tensor<B, 5_c> a, Tensor<5_c, 4_c> b, Tensor<1_c, 4_c> c) {
                    return einsum<"b k, k j -> b j">(a, b) * 0.5 + rearrange<"1 j -> j">(c);
                  }),
      TESSERA_ROW(test_gemm_default_matrix_bias, [](Tensor<B, 6_c> a, Tensor<6_c, 4_c> b,
                                                    Tensor<B, 4_c> c) { return einsum<"b k, k j -> b j">(a, b) + c; }),
      TESSERA_ROW(test_gemm_default_scalar_bias,
                  [](Tensor<B, 3_c> a, Tensor<3_c, 4_c> b, Tensor<> c) { return einsum<"b k, k j -> b j">(a, b) + c; }),
      TESSERA_ROW(test_gemm_default_vector_bias,
                  [](Tensor<B, 7_c> a, Tensor<7_c, 4_c> b, Tensor<1_c, 4_c> c) {
                    return einsum<"b k, k j -> b j">(a, b) + rearrange<"1 j -> j">(c);
                  }),
      TESSERA_ROW(test_gemm_transposeA,
                  [](Tensor<6_c, 3_c> a, Tensor<6_c, 4_c> b, Tensor<1_c, 4_c> c) {
                    return einsum<"k i, k j -> i j">(a, b) + rearrange<"1 j -> j">(c);
                  }),
      TESSERA_ROW(test_operator_addmm,
                  [](Tensor<B, 3_c> a, Tensor<3_c, 4_c> b, Tensor<4_c> c) {
                    return einsum<"b k, k j -> b j">(a, b) + (einsum<"b k, k j -> b j">(a, b) + c);
                  }),
      TESSERA_ROW(test_Linear_no_bias, [](Tensor<B, 10_c> x, LinearWithoutBias<10_c, 8_c> f) { return f(x); }),

      TESSERA_ROW(test_matmul_1d_1d, [](Tensor<3_c> a, Tensor<3_c> b) { return einsum<"k, k ->">(a, b); }),
      TESSERA_ROW(test_matmul_2d, [](Tensor<B, 4_c> a, Tensor<4_c, 3_c> b) { return einsum<"b k, k j -> b j">(a, b); }),
      TESSERA_ROW(test_matmul_4d,
                  [](Tensor<B, 2_c, 3_c, 4_c> a, Tensor<B, 2_c, 4_c, 3_c> b) {
                    return einsum<"b h i k, b h k j -> b h i j">(a, b);
                  }),
      TESSERA_ROW(test_matmul_bcast,
                  [](Tensor<B, 1_c, 3_c, 4_c> a, Tensor<1_c, 2_c, 4_c, 2_c> b) {
                    return einsum<"b i k, h k j -> b h i j">(rearrange<"b 1 i k -> b i k">(a),
                                                             rearrange<"1 h k j -> h k j">(b));
                  }),
  };
}

}  // namespace tessera::test
