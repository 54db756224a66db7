// Each layer of a discriminator halves its image, until a kernel of 4 rows does not fit any more.
// expect: conv2d of [B, 512, 1, 1] by [512, 512, 4, 4]: the kernel reaches over 4 rows, and with padding there are 3; a
// padding of 2 would do [convolution-size]
#include "axes.hpp"
#include "models/vqgan_discriminator.hpp"

namespace tessera {

#ifdef TWIN
inline auto f(Tensor<B, 3_c, 16_c, 16_c> x) { return models::NLayerDiscriminator<{.layers = 2}>{}(x); }
#else
inline auto f(Tensor<B, 3_c, 16_c, 16_c> x) { return models::NLayerDiscriminator<{.layers = 4}>{}(x); }
#endif

}  // namespace tessera
