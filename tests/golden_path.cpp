#include "tests/paths.hpp"

const char* const tessera::paths::golden = TESSERA_GOLDEN;
