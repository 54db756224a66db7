// int4: weights from -8 to 7 that stand for as many times the scale of 32 of a column (after Dettmers and Zettlemoyer
// 2023, The case for 4-bit precision). They meet rows of int8; a group's sum of products is exact.
// Panels of 32 columns, group after group, the depth filled up with zeros to whole steps of q_depth. A group is
// [32 / 8][32][4] bytes: in their lower halves four weights of a column, in their upper ones the next four; then the
// columns' scales over 16 as bf16, since a weight is multiplied where it lies in the upper half of a byte.
typedef std::uint8_t int4;
[[maybe_unused]] static inline int4* int4_at(real* p) { return reinterpret_cast<int4*>(p); }
[[maybe_unused]] static inline const int4* int4_at(const real* p) { return reinterpret_cast<const int4*>(p); }
static constexpr std::int64_t q4_depth = 32, q4_weights = q4_depth / 2 * q_columns,
                              q4_group = q4_weights + 2 * q_columns;
