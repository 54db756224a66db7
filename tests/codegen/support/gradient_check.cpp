#include "tests/codegen/support/gradient_check.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "codegen/passes/decompose.hpp"
#include "codegen/passes/differentiate.hpp"
#include "codegen/passes/print.hpp"
#include "codegen/passes/simplify.hpp"
#include "codegen/passes/verify.hpp"

namespace tessera::test {

using graph::Graph;

namespace {

/// Every gradient of the graph by central differences, by the name of what it belongs to.
Arrays differences(const Sketch& sketch) {
  constexpr double h = 1e-5;
  Arrays given = sketch.given, results;
  for (const auto& [name, array] : sketch.given) {
    Array slope = array;
    for (std::size_t i = 0; i < array.numbers.size(); ++i) {
      double loss[2];
      for (int side : {0, 1}) {
        given[name].numbers[i] = array.numbers[i] + (side ? h : -h);
        loss[side] = interpret(sketch.graph, sketch.batch, given).at("loss").numbers[0];
      }
      given[name].numbers[i] = array.numbers[i];
      slope.numbers[i] = (loss[1] - loss[0]) / (2 * h);
    }
    results[name] = slope;
  }
  return results;
}

void compare(const char* which, const Graph& joint, const Sketch& sketch, const Arrays& slopes) {
  ASSERT_NO_THROW(codegen::verify(joint)) << which << "\n" << codegen::print(joint);
  const Arrays results = interpret(joint, sketch.batch, sketch.given);
  int compared = 0;
  for (const auto& [name, result] : results) {
    const auto slope = slopes.find(name);
    if (slope == slopes.end()) continue;  // not a gradient: a value, or the loss
    ++compared;
    ASSERT_EQ(result.numbers.size(), slope->second.numbers.size()) << which << ", " << name;
    for (std::size_t i = 0; i < result.numbers.size(); ++i)
      ASSERT_NEAR(result.numbers[i], slope->second.numbers[i],
                  1e-7 * std::max(1.0, std::fabs(slope->second.numbers[i])))
          << which << ", element " << i << " of " << name << "\n"
          << codegen::print(joint);
  }
  ASSERT_GT(compared, 0) << which;
}

}  // namespace

void check_gradients(Sketch& sketch) {
  ASSERT_NO_THROW(codegen::verify(sketch.graph));
  const Arrays slopes = differences(sketch);
  const Graph joint = codegen::differentiate(sketch.graph, true);
  const Graph decomposed = codegen::decompose(joint);
  compare("differentiated", joint, sketch, slopes);
  compare("decomposed", decomposed, sketch, slopes);
  compare("simplified", codegen::simplify(joint), sketch, slopes);
  compare("decomposed and simplified", codegen::simplify(decomposed), sketch, slopes);
  compare("decomposed first", codegen::differentiate(codegen::decompose(sketch.graph), true), sketch, slopes);
}

}  // namespace tessera::test
