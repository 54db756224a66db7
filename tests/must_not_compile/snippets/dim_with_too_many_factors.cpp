// A product of seven axes is more than a dim holds.
// expect: a dim has at most 6 terms of 6 factors each, and this expression has more: define an axis for a part of it
// [dim-too-long]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline constexpr auto VOLUME = axis<"VOLUME", GH * GH * GH * GH * GH * GH>;
#else
inline constexpr auto VOLUME = axis<"VOLUME", GH * GH * GH * GH * GH * GH * GH>;
#endif

}  // namespace tessera
