// Contracts at the level of the declaration: numbers that the compiler knows.
#include "dsl/contract.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "dsl/trace.hpp"
#include "models/scalar_graph.hpp"
#include "models/sentence_attention.hpp"
#include "models/vit.hpp"
#include "models/vit_cifar.hpp"
#include "models/vit_mnist.hpp"
#include "models/vit_notebook.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto D = axis<"D", 8>;
constexpr auto H = axis<"H", 3>;
constexpr std::int64_t map = 8 * 8 + 8;

struct Inner : Module {
  Parameter<2_c, D> scale;
  Linear<D, D> linear;
  TESSERA_MEMBERS(Inner, scale, linear)

  Tensor<B, D> forward(Tensor<B, D> x) const { return linear(x); }
};

TEST(Contract, ParametersAreCountedThroughEveryKindOfModule) {
  static_assert(parameter_count<Parameter<>>() == 1);
  static_assert(parameter_count<Parameter<H + 1_c, D>>() == 32);
  static_assert(parameter_count<Gelu>() == 0);
  static_assert(parameter_count<Linear<D, D>>() == map);
  static_assert(parameter_count<Inner>() == 16 + map);
  static_assert(parameter_count<Stack<Inner, 5>>() == 5 * (16 + map));
  static_assert(parameter_count<Stacks<Stack<Inner, 5>, Stack<Linear<D, D>, 2>>>() == 5 * (16 + map) + 2 * map);
  static_assert(parameter_count<List<Inner, H>>() == 3 * (16 + map));
  static_assert(parameter_count<Sequential<Linear<D, D>, Gelu, Inner>>() == map + 16 + map);
  static_assert(parameter_count<Stack<Sequential<Inner, List<Linear<D, D>, 2>>, 4>>() == 4 * (16 + 3 * map));
  static_assert(parameter_count<Repeat<6>>() == 0, "its block is a member beside it");
}

template <class Model>
std::int64_t traced() {
  const graph::Graph g = trace<Model>("model");
  std::int64_t total = 0;
  for (const graph::Node& node : g.nodes) {
    if (node.op != graph::Op::parameter) continue;
    std::int64_t count = g.regions[static_cast<std::size_t>(node.region)].count;
    for (const Dim& dim : node.shape) count *= dim.value();
    total += count;
  }
  return total;
}

TEST(Contract, TheCompilerCountsTheParametersThatTracingRecords) {
  EXPECT_EQ(parameter_count<models::vit_mnist::VitMnist>(), traced<models::vit_mnist::VitMnist>());
  EXPECT_EQ(parameter_count<models::VitTiny>(), traced<models::VitTiny>());
  EXPECT_EQ(parameter_count<models::CifarVit<models::CifarVitSpec{}>>(),
            traced<models::CifarVit<models::CifarVitSpec{}>>());
  EXPECT_EQ(parameter_count<models::NotebookVit<models::NotebookVitSpec{}>>(),
            traced<models::NotebookVit<models::NotebookVitSpec{}>>());
}

/// Inner with an optimiser.
template <Optimizer Chosen, double Average = 0.0>
struct Trained : Inner {
  static constexpr Recipe recipe{.optimizer = Chosen, .average = Average};
};

TEST(Contract, AnOptimiserKeepsAsManyNumbersOfAParameterAsItsRecipeSays) {
  constexpr std::int64_t once = 4 * parameter_count<Inner>();
  static_assert(parameter_bytes<Inner>() == once);
  static_assert(optimizer_bytes<Trained<Optimizer{}>>() == 2 * once);
  static_assert(optimizer_bytes<Trained<Optimizer{.kind = Optimizer::adamw}>>() == 2 * once);
  static_assert(optimizer_bytes<Trained<Optimizer{.kind = Optimizer::sgd}>>() == 0);
  static_assert(optimizer_bytes<Trained<Optimizer{.kind = Optimizer::sgd, .momentum = 0.9}>>() == once);
  static_assert(optimizer_bytes<Trained<Optimizer{}, 0.999>>() == 3 * once);
}

// torchvision's vit_b_16 and vit_l_16.
TEST(Contract, HoldsInAStaticAssertWithoutTracing) {
  static_assert(parameter_count<models::VitBase>() == 86'567'656);
  static_assert(parameter_count<models::VitLarge>() == 304'326'632);
  static_assert(parameter_count<models::SentenceAttention>() == 3 * 4 * 4);
  static_assert(parameter_count<models::ScalarGraph>() == 2);
  static_assert(parameter_bytes<models::VitBase>() == 4 * 86'567'656);
  static_assert(optimizer_bytes<models::VitBase>() == 8 * 86'567'656);
  static_assert(parameter_bytes<models::VitBase>() < 512_MiB && parameter_bytes<models::VitLarge>() > 1_GiB);
  static_assert(8_GiB == 8'589'934'592 && 1_MiB == 1'048'576 && 1_KiB == 1024);
}

}  // namespace
