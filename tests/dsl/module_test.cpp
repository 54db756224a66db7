// Modules: reflection, checkpoint keys, paths.
#include <gtest/gtest.h>

#include <boost/hana/concept/struct.hpp>
#include <boost/hana/equal.hpp>
#include <boost/hana/keys.hpp>
#include <boost/hana/length.hpp>
#include <string>
#include <vector>

#include "dsl/tessera.hpp"

namespace {

using namespace tessera;
namespace hana = boost::hana;

constexpr auto B = axis<"B">;
constexpr auto D = axis<"D", 8>;
constexpr auto H = axis<"H", 3>;

struct Inner : Module {
  Parameter<D> scale{constant(1)};
  Linear<D, D> map;
  TESSERA_MEMBERS(Inner, scale, map)

  Tensor<B, D> forward(Tensor<B, D> x) const { return map(x) * scale; }
};

struct Outer : Module {
  List<Inner, H> branches;
  Sequential<Gelu, Inner> tail;
  TESSERA_MEMBERS(Outer, branches, tail)

  Tensor<B, D> forward(Tensor<B, D> x) const {
    for (std::size_t i = 0; i < branches.size(); ++i) x = branches[i](x);
    return tail(x);
  }
};

std::vector<std::string> keys(const graph::Graph& g) {
  std::vector<std::string> names;
  for (const graph::Node& node : g.nodes)
    if (node.op == graph::Op::parameter) names.push_back(node.name);
  return names;
}

TEST(Module, IsAHanaStruct) {
  static_assert(hana::Struct<Inner>::value);
  static_assert(decltype(hana::length(hana::keys(Inner{})))::value == 2);
  static_assert(decltype(hana::at_c<1>(hana::keys(Inner{})) == hana::string_c<'m', 'a', 'p'>)::value);
}

TEST(Module, MemberNamesAreCheckpointKeys) {
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Outer outer;
  bind(outer, "");
  EXPECT_EQ(keys(g), (std::vector<std::string>{"branches.0.scale", "branches.0.map.weight", "branches.0.map.bias",
                                               "branches.1.scale", "branches.1.map.weight", "branches.1.map.bias",
                                               "branches.2.scale", "branches.2.map.weight", "branches.2.map.bias",
                                               "tail.1.scale", "tail.1.map.weight", "tail.1.map.bias"}));
}

TEST(Module, RecordsUnderItsOwnPathAndRestoresTheCallers) {
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Outer outer;
  bind(outer, "net");
  builder.path = "caller";
  const Tensor<B, D> y = outer(Tensor<B, D>(builder.input("x", Tensor<B, D>::shape.dims())));
  EXPECT_EQ(builder.path, "caller");
  EXPECT_EQ(g[y.id].path, "net.tail.1");
  EXPECT_EQ(g[g[y.id].operands[0]].path, "net.tail.1.map");
  EXPECT_EQ(g[outer.branches[2].map.bias.id].path, "net.branches.2.map");
}

TEST(Module, AppliedTwiceSharesItsParameters) {
  graph::Graph g;
  graph::Builder builder(g);
  const RecorderScope scope(builder);
  Inner inner;
  bind(inner, "inner");
  const Tensor<B, D> x(builder.input("x", Tensor<B, D>::shape.dims()));
  inner(inner(x));
  EXPECT_EQ(keys(g).size(), 3U);
}

}  // namespace
