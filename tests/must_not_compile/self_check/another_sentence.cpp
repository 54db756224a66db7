// The sentence is another one than is expected, which the check has to notice.
// expect: linear (D=192 -> D=192) cannot take this
#include "dsl/tessera.hpp"

#ifdef TWIN
inline constexpr auto D = tessera::axis<"D", 1>;
#else
inline constexpr auto D = tessera::axis<"D", 0>;
#endif
