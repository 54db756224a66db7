// The twin has the same mistake, which the check has to notice.
// expect: axis D has size 0; it has to be at least 1 [axis-size]
#include "dsl/tessera.hpp"

#ifdef TWIN
#endif
inline constexpr auto D = tessera::axis<"D", 0>;
