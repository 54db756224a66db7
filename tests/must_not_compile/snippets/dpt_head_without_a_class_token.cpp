// A head that maps each patch together with the class token needs one.
// expect: a DPT head reads the class token, and the encoder has none; did you mean .readout = Readout::ignored?
// [dpt-spec]
#include "dsl/trace.hpp"
#include "models/dpt.hpp"

namespace tessera {

using models::Pooling;
using models::Readout;
using models::VitSpec;
inline constexpr VitSpec encoder{.classes = 0, .class_token = false, .pooling = Pooling::mean, .layers = {2, 5, 8, 11}};

#ifdef TWIN
using Model = models::Dpt<encoder, {.readout = Readout::ignored}>;
#else
using Model = models::Dpt<encoder, {.readout = Readout::projected}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
