// What the entry points of a program take: the same for every back end and instruction set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/tree.hpp"
#include "codegen/passes/pipeline.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

/// In capital letters, as in macros.
std::string upper(std::string_view text);

/// `real` is "float" or "double".
std::vector<tree::Parameter> entry_parameters(const KernelProgram& program, const std::string& real);

/// What is called when a range of the gradients is final, and its context: behind all others, where ranks share a step.
inline void append_callback(std::vector<tree::Parameter>& parameters) {
  parameters.push_back({"tessera_range_ready", "ready"});
  parameters.push_back({"void*", "context"});
}

/// Of the function that updates the weights in panels and packs the parameters.
std::vector<tree::Parameter> update_and_pack_parameters(const KernelProgram& update, const std::string& real);

/// Of the function that packs the parameters.
std::vector<tree::Parameter> pack_parameters(const std::string& real);

/// Whether the declaration has a loss: else its programs are those of inference, forward and inspect.
bool trains(const std::vector<Plan>& plans);

/// Whether the model reads integers, "tokens", and not images.
bool takes_tokens(const graph::Graph& program);
/// What it reads: "tokens" or "images".
std::string input_of(const graph::Graph& program);

/// What a program's loss compares the outputs with: "labels", which are integers; real "targets", of a recipe that
/// softens labels or of a loss of the model's own; or "output_gradients", of a loss of the caller's. The losses of a
/// phase of a training step take one number of the caller, "factor".
std::string compared_with(const graph::Graph& program);
/// Whether the declaration's loss is of real targets, and not of labels.
bool takes_targets(const graph::Graph& declared);
/// Whether the loss is the caller's, who brings its gradient with respect to the outputs.
bool takes_output_gradients(const graph::Graph& declared);
/// Whether the loss is of labels, which a program has of its images.
bool takes_labels(const graph::Graph& declared);

/// Whether the program takes the parameters as they are: all but those that read packed ones alone.
bool takes_parameters(const KernelProgram& program);
/// Whether the program reads packed parameters (or, an update, writes them), which it then takes behind the parameters.
bool reads_packed(const KernelProgram& program);
/// Whether some of its outputs are attention maps.
bool has_attention(const KernelProgram& program);
/// Whether it has an output of this name.
bool gives(const KernelProgram& program, const std::string& output);

/// Whether the program drops out, and takes the random state for it.
bool takes_random(const KernelProgram& program);

}  // namespace tessera::codegen
