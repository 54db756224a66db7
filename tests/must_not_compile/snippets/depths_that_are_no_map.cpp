// A depth is a number for each pixel, without an axis of channels.
// expect: Depths tells depths, of images [B, C=3, IH=224, IW=224], and returns [B, 1, IH=224, IW=224]: a depth is a
// number a pixel, [B, height, width] of images [B, C, height, width] [model-output]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Depths : Module {
  static constexpr Depth depth = Depth::metres;
  Conv2d<C, 1_c, 1_c, 1_c> head;
  TESSERA_MEMBERS(Depths, head)
#ifdef TWIN
  Tensor<B, IH, IW> forward(Tensor<B, C, IH, IW> x) const { return rearrange<"b 1 y x -> b y x">(head(x)); }
#else
  Tensor<B, 1_c, IH, IW> forward(Tensor<B, C, IH, IW> x) const { return head(x); }
#endif
};

inline auto g() { return trace<Depths>("depths"); }

}  // namespace tessera
