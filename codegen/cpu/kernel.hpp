// One kernel of the plan as C++ functions over the v_ names of codegen/cpu/simd, the same text for every instruction
// set but for its tiles.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/emit/entry_writer.hpp"
#include "codegen/emit/tree.hpp"
#include "codegen/plan/plan.hpp"

namespace tessera::codegen::cpu {

/// A function of the kernel, and how it is called.
struct Emitted {
  tree::Function function;
  /// What its leading index parameters run over.
  enum class Tasks : std::uint8_t {
    once,    ///< no index parameter
    images,  ///< one image: pointers are to its values, so that the text does not depend on where they lie
    points,  ///< one index of axis `parallel`
    blocks,  ///< begin, end over axis `parallel`
    parts,   ///< the same in as many parts as there are threads, each of whole blocks
    chunks,  ///< chunk of the batch, and the batch
    batch,   ///< the batch alone
  } tasks = Tasks::once;
  int parallel = -1;  ///< kernel axis
  std::int64_t block = 1;
  bool shared = false;              ///< its first parameter is the team among whose threads its rows are partitioned
  std::vector<Argument> arguments;  ///< after the index parameters, in order
};

/// Writes a function that an emitted one calls, and says under which name.
using Put = std::function<std::string(tree::Function)>;
/// One function; two with split-K over the batch, which reduces the partials afterwards. `in_team`: what goes image by
/// image is partitioned among the threads of a team where it is large enough.
std::vector<Emitted> emit(const Plan& plan, int kernel, const Target& target, bool in_team, const Put& put);

/// How many points a kernel that goes image by image computes for each of them: what one step makes of one element.
std::int64_t points_of_image(const Kernel& kernel);

/// Types, functions and constants that kernels may use without declaring them.
const std::set<std::string>& known_names();

}  // namespace tessera::codegen::cpu
