// Matrix products of bf16, 32 rows by 32 columns at a time. Left factors are rows; right ones come from panels of 32
// columns in which the two values that a lane multiplies at once are neighbours: [depth / 2][32][2]. A panel's depth is
// filled up with zeros to whole tiles of 32.
static constexpr std::int64_t t_rows = 32, t_columns = 32, t_depth = 32;
static constexpr std::int64_t t_whole(std::int64_t depth) { return (depth + t_depth - 1) / t_depth * t_depth; }
