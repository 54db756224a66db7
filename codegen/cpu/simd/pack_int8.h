/// Brings a weight, [columns, depth], into panels of int8; the scale of each column, and behind them the sum of each.
[[maybe_unused]] static void pack_int8(const real* weight, std::int64_t columns, std::int64_t depth, int8* panels,
                                       real* scales) {
  const std::int64_t whole = q_whole(depth);
  for (std::int64_t first = 0; first < columns; first += q_columns, panels += (whole + 4) * q_columns)
    for (std::int64_t i = 0; i < q_columns; ++i) {
      const std::int64_t column = first + i;
      std::int32_t sum = 0;
      real scale = 0;
      if (column < columns) {
        vec most = v_zero(), nothing = v_zero();
        for (std::int64_t k = 0; k < depth; k += lanes) {
          const int n = static_cast<int>(std::min<std::int64_t>(lanes, depth - k));
          const vec w = v_load_n(weight + column * depth + k, n);
          most = v_max(v_abs(w), most);
          nothing = v_fma(w, v_zero(), nothing);  // unless something is not a number
        }
        scale = v_max_lane(most) / 127 + v_sum(nothing);
        scales[column] = scale;
      }
      const vec inverse = v_set(scale > 0 ? 1 / scale : real(0));
      for (std::int64_t k = 0; k < whole; k += q_depth) {
        alignas(64) int8 step[q_depth] = {};
        if (column < columns)
          for (std::int64_t j = 0; j < q_depth && k + j < depth; j += lanes) {
            const int n = static_cast<int>(std::min<std::int64_t>(lanes, depth - k - j));
            q_store_n(step + j, v_mul(v_load_n(weight + column * depth + k + j, n), inverse), n);
          }
        for (std::int64_t j = 0; j < q_depth; ++j) sum += step[j];
        for (std::int64_t j = 0; j < q_depth; j += 4) std::memcpy(panels + (k + j) * q_columns + i * 4, step + j, 4);
      }
      std::memcpy(panels + whole * q_columns + i * 4, &sum, sizeof sum);
      if (column < columns) scales[columns + column] = scale * static_cast<real>(sum);
    }
}
