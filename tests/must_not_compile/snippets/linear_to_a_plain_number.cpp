// A size in a shape is a dim.
// expect: a plain number, 1000, where a dim belongs: a number is written with _c, as in 1000_c [dim-number]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(const Linear<D, 1000_c>& head, Tensor<B, D> x) { return head(x); }
#else
inline auto f(const Linear<D, 1000>& head, Tensor<B, D> x) { return head(x); }
#endif

}  // namespace tessera
