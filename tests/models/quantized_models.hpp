// Models for the tests of products of int8 and int4.
#pragma once

#include "dsl/tessera.hpp"
#include "tests/models/bf16_models.hpp"

namespace tessera::test {

/// Two linear maps of the images themselves, of rows and of a row alone, at sizes that leave a rest everywhere.
struct SmallLayers : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto N = axis<"N", 37>;
  static constexpr auto D = axis<"D", 42>;
  static constexpr auto CLASSES = axis<"CLASSES", 45>;

  Linear<D, CLASSES> rows;
  Linear<N * D, CLASSES> alone;
  TESSERA_MEMBERS(SmallLayers, rows, alone)
  static constexpr Recipe recipe{};

  Tensor<B, CLASSES> forward(Tensor<B, N, D> x) const { return sum<N>(rows(x)) + alone(reshape<B, N * D>(x)); }
};

}  // namespace tessera::test
