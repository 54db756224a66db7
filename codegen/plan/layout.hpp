// How tensors lie, and how a kernel is cut up: by an estimate of instructions.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan/plan.hpp"

namespace tessera::codegen {

Layout layout_of(const Tensor& tensor, int innermost);
/// Row-major, rows of the last dim `apart` values apart.
Layout layout_with_rows(const Tensor& tensor, std::int64_t apart);
/// Row-major as GEMMs want it: rows of scratch tensors begin with lines of memory where that costs little.
Layout layout_for_gemms(const Tensor& tensor);
/// Chooses the innermost dim of every scratch tensor: the assignment with the lowest estimated cost.
Layouts choose_layouts(const KernelProgram& program, const Target& target);
/// Lanes run along none of the `fixed` axes: those of which a kernel within another one is given one value at a time.
Schedule choose_schedule(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel,
                         const Target& target, const std::vector<int>& fixed = {});
/// An estimate of the instructions that a kernel runs for 32 images, vectorised over `axis`.
double estimate(const KernelProgram& program, const Layouts& layouts, const Kernel& kernel, int axis,
                const Target& target);
/// How far apart in memory two neighbours along a kernel's axis are, for one access.
std::int64_t step_along(const Access& access, const Layout& layout, int axis);

}  // namespace tessera::codegen
