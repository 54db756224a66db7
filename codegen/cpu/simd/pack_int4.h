/// Brings a weight, [columns, depth], into panels of int4; and the sum of each column. Of a group the number farthest
/// from zero becomes -8, so that all sixteen numbers are used.
[[maybe_unused]] static void pack_int4(const real* weight, std::int64_t columns, std::int64_t depth, int4* panels,
                                       real* column_sums) {
  const std::int64_t whole = q_whole(depth);
  for (std::int64_t first = 0; first < columns; first += q_columns, panels += whole / q4_depth * q4_group)
    for (std::int64_t i = 0; i < q_columns; ++i) {
      const std::int64_t column = first + i;
      int4* group = panels;
      real column_sum = 0;
      for (std::int64_t k = 0; k < whole; k += q4_depth, group += q4_group) {
        const std::int64_t count = column < columns ? std::min(depth - k, q4_depth) : 0;
        const auto values = [&](std::int64_t j) {
          return v_load_n(weight + column * depth + k + j, static_cast<int>(std::min<std::int64_t>(lanes, count - j)));
        };
        vec most = v_zero(), least = v_zero(), nothing = v_zero();
        for (std::int64_t j = 0; j < count; j += lanes) {
          const vec w = values(j);
          most = v_max(w, most);
          least = v_max(v_neg(w), least);
          nothing = v_fma(w, v_zero(), nothing);  // unless something is not a number
        }
        const real above = v_max_lane(most), below = v_max_lane(least);
        const real sixteenth = (below > above ? below : -above) / 128 + v_sum(nothing);
        bf16* const stored = reinterpret_cast<bf16*>(group + q4_weights) + i;
        v_store_n_bf16(stored, v_set(sixteenth), 1);
        const real scale = real_at(stored) * 16;
        const vec inverse = v_set(scale == 0 ? real(0) : 1 / scale);
        int8 numbers[q4_depth + lanes] = {};
        for (std::int64_t j = 0; j < count; j += lanes)
          q_store_n(numbers + j, v_mul(values(j), inverse), static_cast<int>(std::min<std::int64_t>(lanes, count - j)));
        std::int32_t sum = 0;
        for (std::int64_t j = 0; j < q4_depth; ++j) {
          numbers[j] = static_cast<int8>(std::clamp<int>(numbers[j], -8, 7));
          sum += numbers[j];
        }
        for (std::int64_t j = 0; j < q4_depth / 2; ++j) {
          const std::int64_t lower = j / 4 * 8 + j % 4;
          group[(j / 4 * q_columns + i) * 4 + j % 4] =
              static_cast<int4>((numbers[lower] & 15) | (numbers[lower + 4] & 15) << 4);
        }
        column_sum += scale * static_cast<real>(sum);
      }
      if (column < columns) column_sums[column] = column_sum;
    }
}
