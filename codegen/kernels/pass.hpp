// Passes: what is changed in the kernels of a program before they are laid out. A back end has a list of them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

struct Pass {
  std::string_view name;  ///< for --disable-pass
  std::string_view does;  ///< a line for --list-passes
  std::function<bool(const KernelProgram&)> applies;
  std::function<void(KernelProgram&)> run;
  bool required = false;  ///< what comes behind it relies on it: it cannot be left out
};

struct PassOptions {
  std::set<std::string, std::less<>> disabled{};                           ///< names of passes that are left out
  std::function<void(const Pass&, const KernelProgram&)> after = nullptr;  ///< called behind each that has run
};

/// Runs those that apply, in order, and verifies the kernels behind each: what it throws names the pass.
void run_passes(KernelProgram& program, const std::vector<Pass>& passes, const PassOptions& options);

/// Throws Error with one sentence where a name is that of no pass of these lists, or of one that is required.
void check_disabled(const std::set<std::string, std::less<>>& disabled, const std::vector<std::vector<Pass>>& lists);

}  // namespace tessera::codegen
