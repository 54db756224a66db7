// Hexadecimal digits in a dim.
// expect: 0x10_c: a number as a dim is written in decimal digits, as 16_c [dim-number]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto SIXTEEN = axis<"SIXTEEN", 16_c>;
#else
inline constexpr auto SIXTEEN = axis<"SIXTEEN", 0x10_c>;
#endif

}  // namespace tessera
