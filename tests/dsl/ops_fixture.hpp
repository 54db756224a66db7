// Records operations on tensors of known numbers and runs what was recorded.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dsl/tessera.hpp"
#include "tests/codegen/support/interpreter.hpp"

namespace tessera::test {

class Ops : public testing::Test {
 protected:
  static constexpr std::int64_t batch = 2;

  using Numbers = std::vector<double>;

  /// An input of these numbers.
  template <class T>
  T input(Numbers numbers, graph::Type type = graph::Type::real) {
    const std::string name = "x" + std::to_string(graph.nodes.size());
    given[name] = {extents(T::shape.dims(), batch), std::move(numbers)};
    return T(builder.input(name, T::shape.dims(), type));
  }
  /// An input that counts 0, 1, 2, ...
  template <class T>
  T counted() {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents(T::shape.dims(), batch)) size *= extent;
    Numbers numbers;
    for (std::int64_t i = 0; i < size; ++i) numbers.push_back(static_cast<double>(i));
    return input<T>(std::move(numbers));
  }
  /// An input of numbers between -1 and 1 in no order.
  template <class T>
  T scattered() {
    T x = counted<T>();
    for (double& number : given[graph[x.id].name].numbers) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      number = static_cast<double>(state_ >> 11) / 4503599627370496.0 - 1;
    }
    return x;
  }
  /// Gives a bound parameter numbers between -1 and 1.
  template <class P>
  void give(const P& parameter) {
    const auto like = scattered<TensorOf<typename P::dims>>();
    given[graph[parameter.id].name] = given[graph[like.id].name];
  }
  template <class T>
  const Numbers& numbers(const T& x) const {
    return given.at(graph[x.id].name).numbers;
  }

  template <class T>
  Numbers run(const T& x) {
    EXPECT_EQ(graph[x.id].shape, T::shape.dims());
    graph.outputs = {{graph::Output::Kind::value, "y", x.id, graph::none}};
    return interpret(graph, batch, given).at("y").numbers;
  }
  template <class T>
  const graph::Node& node(const T& x) const {
    return graph[x.id];
  }
  /// How many nodes of this op there are.
  std::size_t count(graph::Op op) const {
    std::size_t n = 0;
    for (const graph::Node& node : graph.nodes) n += node.op == op;
    return n;
  }

  graph::Graph graph;
  graph::Builder builder{graph};
  RecorderScope scope{builder};
  Arrays given;

 private:
  std::uint64_t state_ = 1;
};

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << "at " << i;
}

}  // namespace tessera::test
