// Class c is read as row c of the table of codes.
// expect: a Gpt of 11 classes and 10 codes: what is read first is a row of the table of codes [gpt-start]
#include "dsl/trace.hpp"
#include "models/taming.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Gpt<{.codes = 11, .positions = 4, .layers = 1, .heads = 2, .width = 8, .classes = 11}>;
#else
using Model = models::Gpt<{.codes = 10, .positions = 4, .layers = 1, .heads = 2, .width = 8, .classes = 11}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
