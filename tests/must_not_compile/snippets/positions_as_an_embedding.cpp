// Positions are a table, and an embedding is called with numbers.
// expect: gather of [N=196, D=192] by [B, N=196, D=192]: these are rows already, and not their numbers (did you mean
// the table, weight, itself?) [gather-table]
#include "axes.hpp"

namespace tessera {

// did you mean: positions.weight
#ifdef TWIN
inline auto f(Tensor<B, N, D> x, const Embedding<N, D>& positions) { return x + positions.weight; }
#else
inline auto f(Tensor<B, N, D> x, const Embedding<N, D>& positions) { return x + positions(x); }
#endif

}  // namespace tessera
