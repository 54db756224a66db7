#include "codegen/kernels/kernel.hpp"

namespace tessera::codegen {

void remove_kernels(KernelProgram& program, const std::set<int>& gone) {
  std::vector<Kernel>& kernels = program.kernels;
  std::vector<int> number(kernels.size());
  std::vector<Kernel> kept;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    number[k] = static_cast<int>(kept.size());
    if (!gone.contains(static_cast<int>(k))) kept.push_back(std::move(kernels[k]));
  }
  kernels = std::move(kept);
  for (std::vector<Item>& order : program.order)
    for (Item& item : order)
      if (item.kernel >= 0) item.kernel = number[static_cast<std::size_t>(item.kernel)];
}

}  // namespace tessera::codegen
