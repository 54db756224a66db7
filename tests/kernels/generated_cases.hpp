// Small models, each about one op or one way in which kernels are made of ops: they are generated when the tests are
// built, compiled, and compared with the interpreter.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/codegen/support/sketch.hpp"

namespace tessera::test {

/// A model with the input "images" [B, I, J], perhaps "labels" [B], parameters, the value "outputs" and a loss.
struct GeneratedCase {
  std::string name;                     ///< a C identifier
  std::function<void(Sketch&)> record;  ///< into a sketch whose batch is set; the graph must not depend on the batch
};

/// All of them, in the order in which they are written to files.
std::vector<GeneratedCase> generated_cases();

/// The parts of generated_cases().
std::vector<GeneratedCase> elementwise_cases();
std::vector<GeneratedCase> structure_cases();
std::vector<GeneratedCase> contraction_cases();
std::vector<GeneratedCase> block_cases();
std::vector<GeneratedCase> model_cases();

/// The random model of that name, "fuzz_SEED_NUMBER".
GeneratedCase fuzz_case(const std::string& name);

/// Random Vision Transformers, "spec_SEED_NUMBER": of the source that tests/kernels/random_specs writes.
std::vector<GeneratedCase> random_specs();

/// Cases whose kernels a pass changes, and the pass: they are also generated without it, as CASE_without_PASS.
inline const std::pair<std::string, std::string> cases_without_passes[] = {
    {"wide_layers_that_drop_out", "matrix_products"},        {"wide_layers_that_read_constants", "constant_folding"},
    {"wide_layers_that_drop_out", "packed_parameters"},      {"wide_layers_that_drop_out", "bias_gradients"},
    {"stack_of_attentions_that_drop_out", "dropout_mask"},   {"wide_layers_that_drop_out", "microbatch"},
    {"attention_by_blocks_of_queries", "attention"},         {"stack_of_three_transformer_blocks", "recompute"},
    {"attention_by_blocks_of_queries", "columns_innermost"}, {"slice_of_a_middle_axis", "dead_slices"},
    {"gradient_of_many_scores", "attention_gradient"},       {"gradient_of_many_scores", "row_sums"}};

/// images [B, I, J] plus a parameter [I, J] called "shift": numbers of the batch and of a parameter in every element.
/// Every element lies between low and high.
graph::NodeId shifted_images(Sketch& s, double low = -2, double high = 2);

/// Numbers that do not depend on the batch, spread between low and high.
graph::NodeId fixed_table(Sketch& s, const std::string& name, const std::vector<Dim>& shape, double low, double high);

/// Makes `node` (batch first) the value "outputs".
void outputs(Sketch& s, graph::NodeId node);

/// Makes `node` (batch first) the value "outputs", and the loss its sum over everything, each element of an image with
/// a weight of its own.
void weighted_outputs(Sketch& s, graph::NodeId node);

}  // namespace tessera::test
