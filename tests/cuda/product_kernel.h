/// out [rows, columns] = left right^T by product, each factor stored in lines along the depth or across it. Included
/// where a product is: the device's own, or one with a fault.
template <int tile_rows, int tile_columns, int of_thread, bool left_deep, bool right_deep>
__global__ void single_precision(const float* left, const float* right, float* out, int rows, int columns, int depth) {
  product<tile_rows, tile_columns, of_thread, left_deep, right_deep>(
      rows, columns, 0, depth, [=](int row, int k) { return left[left_deep ? row * depth + k : k * rows + row]; },
      [=](int column, int k) { return right[right_deep ? column * depth + k : k * columns + column]; },
      [=](int row, int column, real sum) { out[row * columns + column] = sum; });
}
