// Moving numbers about: Concat, DepthToSpace, Expand, Flatten, Gather, Reshape, Split, Tile, Transpose.
#include "tests/onnx/row.hpp"

namespace tessera::test {

std::vector<Row> structure_rows() {
  return {
      TESSERA_ROW(test_concat_1d_axis_negative_1, [](Tensor<2_c> x, Tensor<2_c> y) { return concat<-1>(x, y); }),
      TESSERA_ROW(test_concat_2d_axis_1, [](Tensor<B, 2_c> x, Tensor<B, 2_c> y) { return concat<1>(x, y); }),
      TESSERA_ROW(test_concat_2d_axis_negative_2,
                  [](Tensor<2_c, 2_c> x, Tensor<2_c, 2_c> y) { return concat<-2>(x, y); }),
      TESSERA_ROW(test_concat_3d_axis_1, [](Tensor<B, 2_c, 2_c> x, Tensor<B, 2_c, 2_c> y) { return concat<1>(x, y); }),
      TESSERA_ROW(test_concat_3d_axis_negative_1,
                  [](Tensor<B, 2_c, 2_c> x, Tensor<B, 2_c, 2_c> y) { return concat<-1>(x, y); }),
      TESSERA_ROW(test_concat_3d_axis_negative_3,
                  [](Tensor<2_c, 2_c, 2_c> x, Tensor<2_c, 2_c, 2_c> y) { return concat<-3>(x, y); }),

      TESSERA_ROW(test_depthtospace_example,
                  [](Tensor<B, 8_c, 2_c, 3_c> x) {
                    return rearrange<"b (p q c) h w -> b c (h p) (w q)">(x, "p"_is(2_c), "q"_is(2_c));
                  }),

      TESSERA_ROW(test_expand_dim_unchanged, [](Tensor<3_c, 1_c> x) { return expand<3_c, 4_c>(x); }),

      TESSERA_ROW(test_flatten_axis1, [](Tensor<B, 3_c, 4_c, 5_c> x) { return reshape<B, 60_c>(x); }),
      TESSERA_ROW(test_flatten_axis3, [](Tensor<2_c, 3_c, 4_c, 5_c> x) { return reshape<24_c, 5_c>(x); }),
      TESSERA_ROW(test_flatten_negative_axis1, [](Tensor<2_c, 3_c, 4_c, 5_c> x) { return reshape<24_c, 5_c>(x); }),
      TESSERA_ROW(test_flatten_negative_axis3, [](Tensor<B, 3_c, 4_c, 5_c> x) { return reshape<B, 60_c>(x); }),
      TESSERA_ROW(test_operator_flatten, [](Tensor<B, 2_c, 3_c, 4_c> x) { return reshape<B, 24_c>(x); }),

      TESSERA_ROW(test_gather_0,
                  [](Tensor<5_c, 4_c, 3_c, 2_c> data, Integers<B> indices) { return gather(data, indices); }),
      TESSERA_ROW(test_Embedding, [](Integers<B, 4_c> x, Embedding<4_c, 3_c> table) { return table(x); }),

      TESSERA_ROW(test_reshape_extended_dims, [](Tensor<B, 3_c, 4_c> x) { return reshape<B, 3_c, 2_c, 2_c>(x); }),
      TESSERA_ROW(test_reshape_negative_extended_dims,
                  [](Tensor<2_c, 3_c, 4_c> x) { return reshape<1_c, 2_c, 3_c, 4_c>(x); }),
      TESSERA_ROW(test_reshape_reduced_dims, [](Tensor<B, 3_c, 4_c> x) { return reshape<B, 12_c>(x); }),
      TESSERA_ROW(test_reshape_reordered_last_dims,
                  [](Tensor<B, 3_c, 4_c> x) { return reshape<B, 4_c, 3_c>(reshape<B, 12_c>(x)); }),
      TESSERA_ROW(test_reshape_zero_dim, [](Tensor<B, 3_c, 4_c> x) { return reshape<B, 3_c, 4_c, 1_c>(x); }),

      TESSERA_ROW(test_split_equal_parts_1d_opset13, [](Tensor<6_c> x) { return chunk<0>(x, 3_c); }),
      TESSERA_ROW(test_split_equal_parts_2d, [](Tensor<B, 6_c> x) { return chunk<1>(x, 2_c); }),
      TESSERA_ROW(test_split_equal_parts_default_axis_opset13, [](Tensor<6_c> x) { return chunk<0>(x, 3_c); }),

      TESSERA_ROW(test_split_1d_uneven_split_opset18, [](Tensor<7_c> x) { return split<0>(x, 2_c, 2_c, 2_c, 1_c); }),
      TESSERA_ROW(test_split_variable_parts_1d_opset13, [](Tensor<6_c> x) { return split<0>(x, 2_c, 4_c); }),
      TESSERA_ROW(test_split_variable_parts_2d_opset13, [](Tensor<B, 6_c> x) { return split<1>(x, 2_c, 4_c); }),
      TESSERA_ROW(test_split_variable_parts_default_axis_opset13, [](Tensor<6_c> x) { return split<0>(x, 2_c, 4_c); }),
      TESSERA_ROW(test_operator_chunk, [](Tensor<3_c> x) { return split<0>(x, 2_c, 1_c); }),

      TESSERA_ROW(test_tile,
                  [](Tensor<2_c, 3_c, 4_c, 5_c> x) {
                    return repeat<"a b c d -> (w a) (x b) (y c) (z d)">(x, "w"_is(7_c), "x"_is(6_c), "y"_is(4_c),
                                                                        "z"_is(2_c));
                  }),
      TESSERA_ROW(test_operator_repeat,
                  [](Tensor<B, 2_c, 3_c, 4_c> x) {
                    return repeat<"b c d e -> b (x c) (y d) (z e)">(x, "x"_is(2_c), "y"_is(3_c), "z"_is(4_c));
                  }),

      TESSERA_ROW(test_transpose_all_permutations_0, [](Tensor<B, 3_c, 4_c> x) { return permute<0, 1, 2>(x); }),
      TESSERA_ROW(test_transpose_all_permutations_2, [](Tensor<2_c, 3_c, 4_c> x) { return permute<1, 0, 2>(x); }),
      TESSERA_ROW(test_transpose_all_permutations_4, [](Tensor<2_c, 3_c, 4_c> x) { return permute<2, 0, 1>(x); }),
      TESSERA_ROW(test_transpose_default, [](Tensor<2_c, 3_c, 4_c> x) { return permute<2, 1, 0>(x); }),
  };
}

}  // namespace tessera::test
