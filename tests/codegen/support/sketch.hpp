// Small graphs with numbers to run them on, for the tests of the passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/graph/builder.hpp"
#include "tests/codegen/support/interpreter.hpp"

namespace tessera::test {

/// A graph that is being recorded, with a value for each input and parameter. The axes: a batch of 3, and odd sizes.
struct Sketch {
  graph::Graph graph;
  graph::Builder b{graph};
  Arrays given;
  std::int64_t batch = 3;

  Dim B = Dim::axis("B"), I = Dim::axis("I", 5), J = Dim::axis("J", 7), K = Dim::axis("K", 2);

  Sketch() = default;
  Sketch(const Sketch&) = delete;
  Sketch& operator=(const Sketch&) = delete;

  /// A parameter (in a region: one a layer, the name holds "{}") or an input with numbers between low and high.
  graph::NodeId parameter(const std::string& name, const std::vector<Dim>& shape, double low = -2, double high = 2);
  graph::NodeId input(const std::string& name, const std::vector<Dim>& shape, double low = -2, double high = 2);
  /// An input of integers below `classes`, one for each element.
  graph::NodeId labels(const std::string& name, const std::vector<Dim>& shape, std::int64_t classes);

  void value(const std::string& name, graph::NodeId node);
  /// The loss: the sum of the elements, each weighted by a number of its own, so that every element matters.
  void weighted_loss(graph::NodeId node);
  void loss(graph::NodeId node);

  /// The next pseudo-random number between low and high: the same on every machine.
  double random(double low, double high);

 private:
  Array numbers(const std::vector<Dim>& shape, double low, double high);
  std::uint64_t state_ = 1;
};

}  // namespace tessera::test
