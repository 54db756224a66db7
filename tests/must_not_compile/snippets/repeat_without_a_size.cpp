// How often is said by the size of the new axis.
// expect: repeat<n d -> b n d> at 8: the size of the new axis b is not given: give it with _is [pattern-unknown]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Parameter<1_c, D> token) { return repeat<"n d -> b n d">(token, "b"_is(B)); }
#else
inline auto f(Parameter<1_c, D> token) { return repeat<"n d -> b n d">(token); }
#endif

}  // namespace tessera
