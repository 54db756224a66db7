// A number that no 64 bits hold.
// expect: 9223372036854775808_c: a dim is at most 9223372036854775807, the largest number of 64 bits [dim-too-large]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto MANY = axis<"MANY", 9223372036854775807_c>;
#else
inline constexpr auto MANY = axis<"MANY", 9223372036854775808_c>;
#endif

}  // namespace tessera
