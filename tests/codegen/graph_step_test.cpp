// The graph of step: which models have one, and what is a cache in it.
#include <gtest/gtest.h>

#include <range/v3/algorithm/find.hpp>
#include <vector>

#include "codegen/passes/op.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/stepped.hpp"
#include "codegen/passes/verify.hpp"
#include "dsl/tessera.hpp"
#include "dsl/trace.hpp"

namespace tessera::test {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;

enum class Kind { causal, shows_later, sums_exponentials, mean_of_tokens, own_table, table_that_shows_later };

/// Attention of one head over four tokens, whose keys and values are the tokens themselves.
template <Kind kind>
struct Sequence : Module {
  static constexpr auto B = axis<"B">;
  static constexpr auto V = axis<"V", 5>;
  static constexpr auto T = axis<"T", 4>;
  static constexpr auto J = axis<"J", T>;
  static constexpr auto D = axis<"D", 3>;

  Embedding<V, D> table;
  Parameter<T, D> positions{normal(0, 1)};
  TESSERA_MEMBERS(Sequence, table, positions)

  auto forward(Integers<B, T> tokens) const {
    const Tensor<B, T, D> x = table(tokens) + positions;
    const auto keys = rename<1>(x, J);
    const auto scores = einsum<"b i d, b j d -> b i j">(x, keys);
    const auto weights = [&] {
      if constexpr (kind == Kind::shows_later)
        return softmax<-1>(scores);
      else if constexpr (kind == Kind::own_table || kind == Kind::table_that_shows_later)
        return softmax<-1>(mask_scores(scores, tessera::table<T, J>("mask", [] {
                                         std::vector<double> seen(16);
                                         for (std::size_t place = 0; place < 16; ++place)
                                           seen[place] = place % 4 <= place / 4;
                                         if (kind == Kind::table_that_shows_later)
                                           seen[1] = 1;  // the first query sees the second key
                                         return seen;
                                       })));
      else
        return softmax<-1>(mask_scores(scores, causal_mask<T, J>()));
    }();
    const auto mixed = einsum<"b i j, b j d -> b i d">(weights, keys);
    if constexpr (kind == Kind::mean_of_tokens)
      return mean<1>(mixed);
    else if constexpr (kind == Kind::sums_exponentials)
      return mixed + repeat<"b i -> b i d">(sum<2>(exp(weights)), "d"_is(D));
    else
      return mixed;
  }
};

TEST(Stepped, KeysAndValuesAreCachesOfAllPositionsAndTheRestIsOfOne) {
  const std::optional<Graph> g = codegen::stepped(trace<Sequence<Kind::causal>>("sequence"));
  ASSERT_TRUE(g.has_value());
  EXPECT_NO_THROW(codegen::verify(*g)) << codegen::print(*g);
  std::vector<std::string> caches;
  for (const Node& n : g->nodes)
    if (n.op == Op::cache) caches.push_back(codegen::to_string(n.shape));
  // The scores' columns are positions; the values' are not.
  EXPECT_EQ(caches, (std::vector<std::string>{"[B, D=3, J=4]", "[B, J=4, D=3]"})) << codegen::print(*g);
  EXPECT_EQ(codegen::to_string((*g)[g->outputs[0].node].shape), "[B, 1, D=3]");
  const auto position = ranges::find(g->nodes, "position", &Node::name);
  ASSERT_NE(position, g->nodes.end());
  EXPECT_EQ(position->type, graph::Type::integer);
}

TEST(Stepped, AMaskMayBeATable) {
  const std::optional<Graph> g = codegen::stepped(trace<Sequence<Kind::own_table>>("sequence"));
  ASSERT_TRUE(g.has_value());
  EXPECT_NO_THROW(codegen::verify(*g)) << codegen::print(*g);
}

TEST(Stepped, AModelThatLooksAheadHasNone) {
  EXPECT_FALSE(codegen::stepped(trace<Sequence<Kind::shows_later>>("sequence")).has_value());
  EXPECT_FALSE(codegen::stepped(trace<Sequence<Kind::table_that_shows_later>>("sequence")).has_value());
  Graph g = trace<Sequence<Kind::causal>>("sequence");
  std::size_t planted = 0;
  for (Node& n : g.nodes)
    if (n.op == Op::constant && n.value == 1) n.value = 2, ++planted;  // each query sees one key more
  EXPECT_EQ(planted, 1u);
  EXPECT_FALSE(codegen::stepped(g).has_value());
}

TEST(Stepped, AModelWhoseWeightsOfLaterTokensCountHasNone) {  // exp of such a weight is 1
  EXPECT_FALSE(codegen::stepped(trace<Sequence<Kind::sums_exponentials>>("sequence")).has_value());
}

TEST(Stepped, AModelThatGivesNoRowForEachTokenHasNone) {
  EXPECT_FALSE(codegen::stepped(trace<Sequence<Kind::mean_of_tokens>>("sequence")).has_value());
}

}  // namespace
}  // namespace tessera::test
