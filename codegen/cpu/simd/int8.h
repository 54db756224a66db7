// int8: integers from -127 to 127 that stand for as many times a scale: of a row of a left factor, of a column of
// a right one. Sums of products are exact.
#if defined(__GNUC__)
typedef std::int8_t __attribute__((may_alias)) int8;  // it lies in memory that holds floats at other times
#else
typedef std::int8_t int8;
#endif
[[maybe_unused]] static inline int8* int8_at(real* p) { return reinterpret_cast<int8*>(p); }
[[maybe_unused]] static inline const int8* int8_at(const real* p) { return reinterpret_cast<const int8*>(p); }
// Panels of 32 columns: [depth / 4][32][4], the depth filled up with zeros to whole steps of 64. Behind each panel lie
// the sums of its columns, as 32 words. Rows of left factors have room for whole steps, and anything behind the depth.
static constexpr std::int64_t q_columns = 32, q_depth = 64;
static constexpr std::int64_t q_whole(std::int64_t depth) { return (depth + q_depth - 1) / q_depth * q_depth; }
