// A code is a row of the table: [codes, width].
// expect: nearest of [B, N=196, D=192] among [D=192, V=1024]: axis 2 of the rows is D=192, needs V=1024 (did you
// mean a table [V=1024, D=192]?) [nearest-table]
#include "axes.hpp"

namespace tessera {

inline constexpr auto V = axis<"V", 1024>;

#ifdef TWIN
inline auto f(Tensor<B, N, D> z, const Parameter<V, D>& codebook) { return nearest(z, codebook); }
#else
inline auto f(Tensor<B, N, D> z, const Parameter<D, V>& codebook) { return nearest(z, codebook); }
#endif

}  // namespace tessera
