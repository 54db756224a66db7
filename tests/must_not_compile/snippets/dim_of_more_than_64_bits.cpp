// A product that no 64 bits hold.
// expect: a dim is at most 9223372036854775807, the largest number of 64 bits, and this expression is larger
// [dim-too-large]
#include "axes.hpp"

namespace tessera {

inline constexpr auto WIDE = axis<"WIDE", 3'000'000'000>;

#ifdef TWIN
inline constexpr auto AREA = axis<"AREA", WIDE * WIDE>;
#else
inline constexpr auto AREA = axis<"AREA", WIDE * WIDE * WIDE>;
#endif

}  // namespace tessera
