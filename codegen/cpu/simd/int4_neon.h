// Products of a group; and as reals.
[[maybe_unused]] static inline ivec q4_offset(ivec sum, ivec) { return sum; }
static inline ivec q4_add_products(ivec sum, ivec values, ivec weights) { return q_add_products(sum, values, weights); }
static inline vec q4_reals(ivec sum, ivec) { return vcvtq_f32_s32(sum); }
