// Models that are halves of a training step: whose parameters they train, what they report, which buffers they change.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "dsl/tessera.hpp"
#include "dsl/trace.hpp"

namespace {

using namespace tessera;

constexpr auto B = axis<"B">;
constexpr auto D = axis<"D", 3>;
using Images = Tensor<B, D>;

struct Judge : Module {
  Parameter<D> weight{constant(1)};
  Buffer<D> seen{constant(0)};
  TESSERA_MEMBERS(Judge, weight, seen)

  template <AnyTensor X>
  auto forward(const X& x) const {
    const Tensor<D> now = current(seen) + mean<0>(x);
    assign(seen, now);
    return x * weight;
  }
};

/// A module that binds its members itself: their keys are known as late as the model is traced.
struct SelfBound {
  Judge judge;

  void bind(const std::string& path) { tessera::bind(judge, path); }
  template <AnyTensor X>
  auto operator()(const X& x) const {
    return judge(x);
  }
};

constexpr Keys first = Keys::outside("judge"), second = Keys::within("judge");
struct First {
  static constexpr Halves half{1, {first, second}};
};
struct Second {
  static constexpr Halves half{2, {first, second}};
};
struct Overlapping {
  static constexpr Halves half{1, {Keys::outside("metric"), second}};
};
struct Lacking {
  static constexpr Halves half{1, {Keys::within("scale"), Keys::within("metric")}};
};

template <class Of, bool assigns_trained = false, class J = Judge>
struct Half : Module {
  Parameter<D> scale{constant(1)};
  J judge;
  Frozen<Judge> metric;
  static constexpr Recipe recipe{.half = Of::half};
  TESSERA_MEMBERS(Half, scale, judge, metric)

  Images forward(Images x) const { return x * scale; }
  Losses losses(Images x, Tensor<> factor) const {
    const Images y = forward(x);
    if (assigns_trained) assign(scale, Tensor<D>(scale * 2.0));
    const Tensor<> loss = mean(judge(judge(y))) * factor + mean(metric(y));
    return {loss, {{"total", loss}, {"of_metric", mean(metric(y))}}};
  }
};

std::string refusal(graph::Graph (*traced)(std::string)) {
  try {
    traced("probe");
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

bool trains(const graph::Graph& g, const std::string& key) {
  return std::ranges::find(g.nodes, key, &graph::Node::name)->trained;
}

TEST(Halves, TrainTheirOwnKeysAndNoneThatIsFrozen) {
  const graph::Graph g = trace<Half<First>>("g"), d = trace<Half<Second>>("d");
  for (const char* key : {"scale", "judge.weight", "judge.seen", "metric.weight", "metric.seen"}) {
    EXPECT_EQ(trains(g, key), key == std::string("scale")) << key;
    EXPECT_EQ(trains(d, key), key == std::string("judge.weight")) << key;
  }
}

TEST(Halves, ReportTheirLossesByName) {
  const graph::Graph g = trace<Half<First>>("g");
  EXPECT_EQ(g.losses, (std::vector<std::string>{"total", "of_metric"}));
  const auto losses = std::ranges::find(g.outputs, "losses", &graph::Output::name);
  ASSERT_NE(losses, g.outputs.end());
  EXPECT_EQ(g[losses->node].shape, std::vector<Dim>{Dim::constant(2)});
}

TEST(Halves, GiveABufferTheValueThatWasAssignedLast) {
  const graph::Graph g = trace<Half<First>>("g");
  int found = 0;
  for (const graph::Output& o : g.outputs) {
    if (o.kind != graph::Output::Kind::gradient || o.name != "judge.seen") continue;
    ++found;
    ASSERT_EQ(g[o.node].op, graph::Op::add);
    EXPECT_EQ(g[g[o.node].operands[0]].op, graph::Op::add);  // what the call before assigned
    EXPECT_EQ(g[o.parameter].name, "judge.seen");
  }
  EXPECT_EQ(found, 1);
}

TEST(Halves, EveryParameterIsInOneGroup) {
  EXPECT_EQ(refusal(trace<Half<Overlapping, false, SelfBound>>),
            "probe: both halves of its training step train judge.weight");
  EXPECT_EQ(refusal(trace<Half<Lacking, false, SelfBound>>),
            "probe: neither half of its training step trains judge.weight");
  EXPECT_EQ(refusal(trace<Half<First, true>>), "probe assigns scale, which its half of the step trains");
}

TEST(Halves, AModuleIsAWholeWord) {
  EXPECT_TRUE(second.have("judge.weight"));
  EXPECT_FALSE(second.have("judges.weight"));
  EXPECT_TRUE(second.have("judge"));
  EXPECT_TRUE(first.have("judges.weight"));
}

}  // namespace
