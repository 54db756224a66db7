// A definition has to leave something.
// expect: axis REST has size 0; it has to be at least 1 [axis-size]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto REST = axis<"REST", GH - 13_c>;
#else
inline constexpr auto REST = axis<"REST", GH - 14_c>;
#endif

}  // namespace tessera
