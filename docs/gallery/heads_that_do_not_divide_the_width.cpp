#include "plain.hpp"

auto f(const Tensor<8, 197, 192>& x) { return split_heads<5>(x); }
