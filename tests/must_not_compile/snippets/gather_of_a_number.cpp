// A table has rows.
// expect: gather of [] by [B, N=196]: the table has no rows, needs [V, ...] [gather-table]
#include "axes.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<M, D> table, Tensor<B, N> words) { return gather(table, words); }
#else
inline auto f(Tensor<> table, Tensor<B, N> words) { return gather(table, words); }
#endif

}  // namespace tessera
