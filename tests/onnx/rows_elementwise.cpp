// One number at a time, and softmax: Add, Div, Erf, Gelu, LogSoftmax, Mul, Softmax.
#include "tests/onnx/row.hpp"

namespace tessera::test {

std::vector<Row> elementwise_rows() {
  return {
      TESSERA_ROW(test_add_bcast, [](Tensor<B, 4_c, 5_c> x, Tensor<5_c> y) { return x + y; }),
      TESSERA_ROW(test_div_bcast, [](Tensor<B, 4_c, 5_c> x, Tensor<5_c> y) { return x / y; }),
      TESSERA_ROW(test_mul, [](Tensor<B, 4_c, 5_c> x, Tensor<B, 4_c, 5_c> y) { return x * y; }),
      TESSERA_ROW(test_mul_example, [](Tensor<3_c> x, Tensor<3_c> y) { return x * y; }),
      TESSERA_ROW(test_operator_params,
                  [](Tensor<2_c, 2_c> x, Tensor<2_c, 2_c> y) { return -sigmoid(tanh(x * (x + y))); }),

      TESSERA_ROW(test_erf, [](Tensor<B, 3_c, 32_c, 32_c> x) { return erf(x); }),
      TESSERA_ROW(test_gelu_default_2, [](Tensor<B, 4_c, 5_c> x) { return gelu(x); }),
      TESSERA_ROW(test_gelu_tanh_2, [](Tensor<B, 4_c, 5_c> x) { return gelu_tanh(x); }),

      TESSERA_ROW(test_logsoftmax_axis_1, [](Tensor<B, 4_c, 5_c> x) { return log_softmax<1>(x); }),
      TESSERA_ROW(test_logsoftmax_default_axis, [](Tensor<B, 4_c, 5_c> x) { return log_softmax<-1>(x); }),
      TESSERA_ROW(test_logsoftmax_large_number, [](Tensor<B, 4_c> x) { return log_softmax<-1>(x); }),
      TESSERA_ROW(test_log_softmax_lastdim, [](Tensor<B, 128_c> x) { return log_softmax<-1>(x); }),

      TESSERA_ROW(test_softmax_axis_1, [](Tensor<B, 4_c, 5_c> x) { return softmax<1>(x); }),
      TESSERA_ROW(test_softmax_default_axis, [](Tensor<B, 4_c, 5_c> x) { return softmax<-1>(x); }),
      TESSERA_ROW(test_softmax_large_number, [](Tensor<B, 4_c> x) { return softmax<-1>(x); }),
      TESSERA_ROW(test_softmax_functional_dim3, [](Tensor<B, 3_c, 4_c, 5_c> x) { return softmax<3>(x); }),
      TESSERA_ROW(test_Softmax, [](Tensor<B, 20_c> x) { return softmax<1>(x); }),
  };
}

}  // namespace tessera::test
