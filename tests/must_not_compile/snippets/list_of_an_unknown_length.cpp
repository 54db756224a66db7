// How many modules there are cannot depend on the batch.
// expect: a count has to be known and positive when the program is compiled, and B is known only when it runs [count]
#include <cstddef>

#include "axes.hpp"

namespace tessera {

#ifdef TWIN
using Maps = List<Linear<D, D>, H>;
#else
using Maps = List<Linear<D, D>, B>;
#endif

inline const std::size_t length = Maps::size();

}  // namespace tessera
