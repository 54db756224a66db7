// The head fuses four maps, each of which is made of what one layer gives.
// expect: a DPT head fuses the maps of four layers, and the encoder gives 3; did you mean .layers = {2, 5, 8, 11}?
// [dpt-spec]
#include "dsl/trace.hpp"
#include "models/dpt.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Dpt<{.classes = 0, .layers = {2, 5, 8, 11}}>;
#else
using Model = models::Dpt<{.classes = 0, .layers = {5, 8, 11}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
