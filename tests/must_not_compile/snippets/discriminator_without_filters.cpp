// Each layer of a discriminator doubles the filters of its first one.
// expect: a discriminator has 0 filters, needs at least 1 [vqgan-spec]
#include "axes.hpp"
#include "models/vqgan_discriminator.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, 3_c, 16_c, 16_c> x) { return models::NLayerDiscriminator<{.filters = 8, .layers = 1}>{}(x); }
#else
inline auto f(Tensor<B, 3_c, 16_c, 16_c> x) { return models::NLayerDiscriminator<{.filters = 0, .layers = 1}>{}(x); }
#endif

}  // namespace tessera
