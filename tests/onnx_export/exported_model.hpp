// A declared model with numbers for its parameters, as the runtime exports it, without its kernels.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/checkpoint.hpp"
#include "runtime/model.hpp"
#include "tests/codegen/support/interpreter.hpp"

namespace tessera::test {

class ExportedModel {
 public:
  /// `declared` is the graph as it was traced or recorded, whose output is called "outputs". Repeated blocks are cut to
  /// `layers`.
  ExportedModel(graph::Graph declared, int layers);
  ExportedModel(const ExportedModel&) = delete;
  ExportedModel& operator=(const ExportedModel&) = delete;

  const graph::Graph& forward() const { return forward_; }  ///< as declared, its outputs alone
  const runtime::Model& model() const { return model_; }
  /// Multiplications and the like of one image.
  std::int64_t work() const;
  std::int64_t parameter_floats() const { return model_.parameter_floats; }
  /// Numbers for the parameters, away from the zeros and ones that many start with: two that change places show.
  void fill();
  /// These numbers, for inputs and parameters by name.
  void fill(const Arrays& given);
  void write(const std::string& path, const runtime::Usage& usage = {}, std::uint64_t limit = INT32_MAX) const;
  /// What the interpreter answers, under "outputs", and to what inputs, under their names: those that were given, else
  /// random ones. It reads the single-precision numbers that are exported.
  Arrays answers(std::int64_t batch) const;

 private:
  double codes() const;  ///< rows of the smallest table, which tokens pick from

  graph::Graph declared_, forward_;
  std::string text_;
  std::deque<std::string> names_;
  std::vector<tessera_parameter> rows_;
  std::vector<graph::Init> starts_;  // by row
  std::vector<float> numbers_;
  Arrays inputs_;
  runtime::Model model_;
};

}  // namespace tessera::test
