// A model has one output.
// expect: Heads::forward returns what is no tensor; a model has one output: join several with concat or stack, or
// declare a model for each [model-output]
#include <utility>

#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Heads : Module {
  Linear<D, C> first;
  Linear<D, C> second;
  TESSERA_MEMBERS(Heads, first, second)
#ifdef TWIN
  Tensor<B, 2_c * C> forward(Tensor<B, D> x) const { return concat<-1>(first(x), second(x)); }
#else
  std::pair<Tensor<B, C>, Tensor<B, C> > forward(Tensor<B, D> x) const { return {first(x), second(x)}; }
#endif
};

inline auto g() { return trace<Heads>("heads"); }

}  // namespace tessera
