#include "plain.hpp"

Tensor<8, 197, 192> f(const Tensor<192, 192>& proj, const Tensor<8, 3, 197, 64>& heads) {
  return linear(heads, proj);
}
