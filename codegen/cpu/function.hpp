// A kernel's function around its body: parameters, comment, and a look at all names.
#pragma once

#include <set>
#include <string>

#include "codegen/cpu/kernel.hpp"
#include "codegen/cpu/values.hpp"

namespace tessera::codegen::cpu {

/// Adds the parameter that says how many images a sum over the batch takes up in one call.
void add_images(const Kernel& kernel, Emitted& e);
/// Adds the layer, where the kernel's dropout masks differ from layer to layer.
void add_layer(const Kernel& kernel, Emitted& e);
/// Whether the kernel computes with the batch as a number.
bool uses_batch(const Kernel& kernel);
/// Adds which image and layer it is, and of how many images, where the kernel asks.
void add_numbers(const Values& v, Emitted& e);
/// Adds the tensors that v has touched, and the comment. Throws Error where the function uses a name that nobody
/// declares. `called`: functions of the file that it calls.
void finish(const Values& v, Emitted& e, const std::set<std::string>& called = {});

}  // namespace tessera::codegen::cpu
