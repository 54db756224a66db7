// Five heads cannot share 192 channels.
// expect: 192 / HEADS=5 is not exact: it leaves 2; nearest that work: HEADS=4 or HEADS=6; or 190 or 195 in place of 192
// [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto HEADS = axis<"HEADS", 6>;
inline constexpr auto EACH = axis<"EACH", 192_c / HEADS>;
#else
inline constexpr auto HEADS = axis<"HEADS", 5>;
inline constexpr auto EACH = axis<"EACH", 192_c / HEADS>;
#endif

}  // namespace tessera
