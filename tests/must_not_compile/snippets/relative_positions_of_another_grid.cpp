// The table was made for a grid of seven by seven.
// expect: relative position bias of a grid of GH=14 x GW=14 patches needs a table [729 or 732, heads] and was given
// [169, H=3] (did you mean [729, H=3]?) [relative-position-table]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<729_c, H> table) { return relative_position_bias<GH, GW, 1_c>(table); }
#else
inline auto f(Tensor<169_c, H> table) { return relative_position_bias<GH, GW, 1_c>(table); }
#endif

}  // namespace tessera
