// Codes are counted from 0: with ten of them the last is 9.
// expect: a Gpt that starts with token 10 of 10 codes: what is read first is a row of the table of codes [gpt-start]
#include "dsl/trace.hpp"
#include "models/taming.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Gpt<{.codes = 10, .positions = 4, .layers = 1, .heads = 2, .width = 8, .start = 9}>;
#else
using Model = models::Gpt<{.codes = 10, .positions = 4, .layers = 1, .heads = 2, .width = 8, .start = 10}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
