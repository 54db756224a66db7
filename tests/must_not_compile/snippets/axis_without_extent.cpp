// An axis of size zero.
// expect: axis EMPTY has size 0; it has to be at least 1 [axis-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto EMPTY = axis<"EMPTY", 1>;
#else
inline constexpr auto EMPTY = axis<"EMPTY", 0>;
#endif

}  // namespace tessera
