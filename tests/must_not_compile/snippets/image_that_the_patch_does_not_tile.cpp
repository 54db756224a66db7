// An image of 225 pixels is not a whole number of patches of 16.
// expect: 225 / P=16 is not exact: it leaves 1; nearest that work: P=15 or P=25; or 224 or 240 in place of 225
// [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto GRID = axis<"GRID", 224_c / P>;
#else
inline constexpr auto GRID = axis<"GRID", 225_c / P>;
#endif

}  // namespace tessera
