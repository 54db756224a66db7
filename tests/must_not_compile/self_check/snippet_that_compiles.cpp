// Nothing is wrong here, which the check has to notice.
// expect: no sentence at all
#ifdef TWIN
#endif
#include "dsl/tessera.hpp"
