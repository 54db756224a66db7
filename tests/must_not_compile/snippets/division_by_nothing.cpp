// A difference of two equal dims is zero.
// expect: D=192 / H-3=0 divides by zero [dim-division]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto EACH = axis<"EACH", D / H>;
#else
inline constexpr auto EACH = axis<"EACH", D / (H - 3_c)>;
#endif

}  // namespace tessera
