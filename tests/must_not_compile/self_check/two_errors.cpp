// Two mistakes are two errors, which the check has to notice.
// expect: axis E has size 0; it has to be at least 1 [axis-size]
#include "dsl/tessera.hpp"

#ifdef TWIN
#else
inline constexpr auto D = tessera::axis<"D", 0>;
inline constexpr auto E = tessera::axis<"E", 0>;
#endif
