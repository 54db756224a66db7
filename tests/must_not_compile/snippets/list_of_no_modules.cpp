// A list holds at least one module.
// expect: a count has to be positive, and this is 0 [count]
#include <cstddef>

#include "axes.hpp"

namespace tessera {

#ifdef TWIN
using Maps = List<Linear<D, D>, 1>;
#else
using Maps = List<Linear<D, D>, 0>;
#endif

inline const std::size_t length = Maps::size();

}  // namespace tessera
