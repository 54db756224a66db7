// Rows are compared with codes number by number.
// expect: nearest of [B, N=196, D=192] among [D=192, M=768]: axis 2 of the rows is D=192, needs M=768 (did you mean
// a table [M=768, D=192]?) [nearest-table]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, N, D> rows, Tensor<M, D> codes) { return nearest(rows, codes); }
#else
inline auto f(Tensor<B, N, D> rows, Tensor<D, M> codes) { return nearest(rows, codes); }
#endif

}  // namespace tessera
