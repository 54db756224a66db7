// Models that are phases of a training step: whose parameters they train, what they report, which buffers they change.
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
  static constexpr Phases phase{1, {first, second}};
};
struct Second {
  static constexpr Phases phase{2, {first, second}};
};
struct Overlapping {
  static constexpr Phases phase{1, {Keys::outside("metric"), second}};
};
struct Lacking {
  static constexpr Phases phase{1, {Keys::within("scale"), Keys::within("metric")}};
};

template <class Of, bool assigns_trained = false, class J = Judge>
struct Phase : Module {
  Parameter<D> scale{constant(1)};
  J judge;
  Frozen<Judge> metric;
  static constexpr Recipe recipe{.phase = Of::phase};
  TESSERA_MEMBERS(Phase, scale, judge, metric)

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

TEST(Phases, TrainTheirOwnKeysAndNoneThatIsFrozen) {
  const graph::Graph g = trace<Phase<First>>("g"), d = trace<Phase<Second>>("d");
  for (const char* key : {"scale", "judge.weight", "judge.seen", "metric.weight", "metric.seen"}) {
    EXPECT_EQ(trains(g, key), key == std::string("scale")) << key;
    EXPECT_EQ(trains(d, key), key == std::string("judge.weight")) << key;
  }
}

TEST(Phases, ReportTheirLossesByName) {
  const graph::Graph g = trace<Phase<First>>("g");
  EXPECT_EQ(g.losses, (std::vector<std::string>{"total", "of_metric"}));
  const auto losses = std::ranges::find(g.outputs, "losses", &graph::Output::name);
  ASSERT_NE(losses, g.outputs.end());
  EXPECT_EQ(g[losses->node].shape, std::vector<Dim>{Dim::constant(2)});
}

TEST(Phases, GiveABufferTheValueThatWasAssignedLast) {
  const graph::Graph g = trace<Phase<First>>("g");
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

TEST(Phases, EveryParameterIsInOneGroup) {
  EXPECT_EQ(refusal(trace<Phase<Overlapping, false, SelfBound>>),
            "probe: both phases of its training step train judge.weight");
  EXPECT_EQ(refusal(trace<Phase<Lacking, false, SelfBound>>),
            "probe: neither phase of its training step trains judge.weight");
  EXPECT_EQ(refusal(trace<Phase<First, true>>), "probe assigns scale, which its phase of the step trains");
}

TEST(Phases, AModuleIsAWholeWord) {
  EXPECT_TRUE(second.have("judge.weight"));
  EXPECT_FALSE(second.have("judges.weight"));
  EXPECT_TRUE(second.have("judge"));
  EXPECT_TRUE(first.have("judges.weight"));
}

}  // namespace
