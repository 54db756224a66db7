// A name with a hyphen, which no emitted source could have as a variable.
// expect: axis KEY-VALUE is not spelled as a name: letters, digits and underscores, a letter first, of at most 63
// [axis-spelling]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto PAIR = axis<"KEY_VALUE", 2>;
#else
inline constexpr auto PAIR = axis<"KEY-VALUE", 2>;
#endif

}  // namespace tessera
