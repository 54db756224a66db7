// Products by vdpbf16ps: each lane adds two products of bf16 to a sum.
/// To so many products sums are filled up with zeros.
[[maybe_unused]] static constexpr std::int64_t t_filled(std::int64_t depth) { return depth; }

/// Sums of so many rows and 32 columns.
template <int rows>
static inline void t_dot(real* sums, const bf16* left, std::int64_t stride, const bf16* panel, std::int64_t depth) {
  vec sum[rows][2];
  for (int row = 0; row < rows; ++row) sum[row][0] = sum[row][1] = v_zero();
  const auto step = [&](const auto& pair) {
    const __m512bh near = (__m512bh)_mm512_loadu_si512(panel), far = (__m512bh)_mm512_loadu_si512(panel + 32);
    for (int row = 0; row < rows; ++row) {
      const __m512bh two = (__m512bh)_mm512_set1_epi32(pair(left + row * stride));
      sum[row][0] = _mm512_dpbf16_ps(sum[row][0], two, near);
      sum[row][1] = _mm512_dpbf16_ps(sum[row][1], two, far);
    }
    panel += 64;
  };
  std::int64_t k = 0;
  for (; k + 1 < depth; k += 2)
    step([&](const bf16* from) {
      std::int32_t two;
      std::memcpy(&two, from + k, sizeof two);
      return two;
    });
  // What lies behind a row is not the product's: it might not even be a number.
  if (k < depth) step([&](const bf16* from) { return static_cast<std::int32_t>(from[k]); });
  for (int row = 0; row < rows; ++row) {
    v_store(sums + row * t_columns, sum[row][0]);
    v_store(sums + row * t_columns + lanes, sum[row][1]);
  }
}
/// sums[row * 32 + column] of a matrix product.
static inline void t_product(real* sums, std::int64_t rows, std::int64_t, const bf16* left, std::int64_t stride,
                             const bf16* panel, std::int64_t depth, const bf16*, std::int64_t) {
  constexpr int most = 12;  // sums that the registers hold, with the factors
  for (std::int64_t row = 0; row < rows; row += most) {
    real* const to = sums + row * t_columns;
    const bf16* const from = left + row * stride;
    switch (std::min<std::int64_t>(rows - row, most)) {
      case 1:
        t_dot<1>(to, from, stride, panel, depth);
        break;
      case 2:
        t_dot<2>(to, from, stride, panel, depth);
        break;
      case 3:
        t_dot<3>(to, from, stride, panel, depth);
        break;
      case 4:
        t_dot<4>(to, from, stride, panel, depth);
        break;
      case 5:
        t_dot<5>(to, from, stride, panel, depth);
        break;
      case 6:
        t_dot<6>(to, from, stride, panel, depth);
        break;
      case 7:
        t_dot<7>(to, from, stride, panel, depth);
        break;
      case 8:
        t_dot<8>(to, from, stride, panel, depth);
        break;
      case 9:
        t_dot<9>(to, from, stride, panel, depth);
        break;
      case 10:
        t_dot<10>(to, from, stride, panel, depth);
        break;
      case 11:
        t_dot<11>(to, from, stride, panel, depth);
        break;
      default:
        t_dot<most>(to, from, stride, panel, depth);
    }
  }
}

static constexpr bool t_in_place = false;
static inline void t_accumulate_whole(bool, const bf16*, std::int64_t, const bf16*, std::int64_t, real*, std::int64_t) {
}
