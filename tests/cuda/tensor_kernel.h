/// out [rows, columns] = left right^T by tensor_product, each factor stored in lines along the depth or across it.
/// Those of a factor in eights are as many numbers apart as whole eights need. Included where a tensor_product is: the
/// device's own, or one with a fault.
template <int tile_rows, int tile_columns, int warps_down, int warps_across, bool left_deep, bool left_eights,
          bool right_deep, bool right_eights>
__global__ void on_tensor_cores(const bf16* left, const bf16* right, float* out, int rows, int columns, int depth) {
  const int left_length = left_deep ? depth : rows, right_length = right_deep ? depth : columns;
  const int left_line = left_eights ? (left_length + 7) / 8 * 8 : left_length;
  const int right_line = right_eights ? (right_length + 7) / 8 * 8 : right_length;
  tensor_product<tile_rows, tile_columns, warps_down, warps_across, left_deep, left_eights, right_deep, right_eights>(
      rows, columns, 0, depth,
      [=](int row, int k) { return left + (left_deep ? row * left_line + k : k * left_line + row); },
      [=](int column, int k) { return right + (right_deep ? column * right_line + k : k * right_line + column); },
      [=](int row, int column, real sum) {
        // Read whether the row is stored or not.
        static_cast<void>(*reinterpret_cast<const volatile std::uint16_t*>(left + (left_deep ? row * left_line : row)));
        return [=] { out[row * columns + column] = sum; };
      });
}
