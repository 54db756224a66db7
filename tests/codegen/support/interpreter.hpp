// Runs a graph as it is written, in double precision and without any cleverness: the oracle of the generator's tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dsl/graph/graph.hpp"

namespace tessera::test {

/// Numbers in row-major order.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> numbers;
};

/// Inputs and parameters by name, outputs by name; the parameters of a region have one name a layer
/// ("blocks.0.weight").
using Arrays = std::map<std::string, Array>;

/// "blocks.{}.weight", 3 -> "blocks.3.weight"
std::string layer_name(const std::string& name, int layer);

/// The extents of a shape when every axis without a size has `batch` elements.
std::vector<std::int64_t> extents(const std::vector<Dim>& shape, std::int64_t batch);

/// What the factors of a matrix product are rounded to. One is a sum of products of two factors, each of which differs
/// along an axis of the result that the other does not know.
enum class Operands { exact, bf16 };

/// Whether a node takes the value of another rounded to bf16, as it is stored.
using Rounds = std::function<bool(graph::NodeId reader, graph::NodeId value)>;

/// The value of every output. Throws std::out_of_range when `given` lacks an input or a parameter, and
/// std::invalid_argument when it has another number of elements than the graph says.
Arrays interpret(const graph::Graph& graph, std::int64_t batch, const Arrays& given, Operands factors = Operands::exact,
                 const Rounds& rounds = nullptr);

}  // namespace tessera::test
