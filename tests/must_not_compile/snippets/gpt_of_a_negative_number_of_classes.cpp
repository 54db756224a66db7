// Without classes it is 0.
// expect: a Gpt of -1 classes and 10 codes: what is read first is a row of the table of codes [gpt-start]
#include "dsl/trace.hpp"
#include "models/taming.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Gpt<{.codes = 10, .positions = 4, .layers = 1, .heads = 2, .width = 8, .classes = 0}>;
#else
using Model = models::Gpt<{.codes = 10, .positions = 4, .layers = 1, .heads = 2, .width = 8, .classes = -1}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
