// Layers are counted from 0.
// expect: the layers that a ViT gives end with its last block, and of 12, counted from 0, 12 is not the last; did
// you mean .layers = {3, 11}? [vit-spec]
#include "dsl/trace.hpp"
#include "models/vit.hpp"

namespace tessera {

#ifdef TWIN
using Model = models::Vit<{.classes = 0, .layers = {3, 11}}>;
#else
using Model = models::Vit<{.classes = 0, .layers = {3, 12}}>;
#endif

inline auto f() { return trace<Model>("model"); }

}  // namespace tessera
