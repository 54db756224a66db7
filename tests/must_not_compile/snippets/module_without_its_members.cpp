// Nobody can know what is in a struct, so a module has to say it.
// expect: a module has no TESSERA_MEMBERS, by which its parameters get their keys and its forward is called: write
// TESSERA_MEMBERS(Self, member, ...) into it [module-members]
#include "axes.hpp"
#include "dsl/trace.hpp"

namespace tessera {

struct Mlp : Module {
#ifdef TWIN
  Linear<D, M> fc1;
  Linear<M, D> fc2;
  TESSERA_MEMBERS(Mlp, fc1, fc2)
#else
  Linear<D, M> fc1;
  Linear<M, D> fc2;
#endif
  Tensor<B, N, D> forward(Tensor<B, N, D> x) const { return fc2(gelu(fc1(x))); }
};

struct Tokens : Module {
  Mlp mlp;
  Linear<D, C> head;
  TESSERA_MEMBERS(Tokens, mlp, head)
  Tensor<B, C> forward(Tensor<B, N, D> x) const { return head(mean<N>(mlp(x))); }
};

inline auto g() { return trace<Tokens>("tokens"); }

}  // namespace tessera
