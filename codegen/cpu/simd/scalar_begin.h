#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
