// The measured time of each kernel, beside its share of the FLOPs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// What `bench --kernels` measures: a run's time, and where it goes.
struct KernelTimes {
  struct Row {
    std::string name;  ///< of a kernel of the page, or what else took time
    double milliseconds = 0, share = 0;
    double flops_share = 0;  ///< of the program's FLOPs; 0 for what is no kernel
    std::string shown_share() const;
  };
  struct Program {
    std::string name;  ///< "forward" or "loss_and_gradients"
    double milliseconds = 0;
    std::int64_t runs = 0, samples = 0;
    std::vector<Row> rows;  ///< what takes longest, first
  };
  std::string isa;
  std::int64_t batch = 0;
  std::vector<Program> programs;
};

/// Runs the forward pass and, where there is a loss, the training step for so many seconds each, and looks a thousand
/// times a second at which instruction the calling thread is. Line tables say of which kernel it is, inlined or not;
/// kernels of the same text share a function and are one row. Throws an Error where the emitted files were compiled
/// without line tables, where there is no addr2line (binutils), and on other systems than Linux.
KernelTimes measure_kernels(const Model& model, std::int64_t batch, double seconds);

/// For people: a table for each program.
std::string kernel_table(const KernelTimes& times);

/// As JSON, for `summary --html --times`.
std::string kernel_json(const KernelTimes& times, const Model& model);

/// Reads what kernel_json wrote. Throws an Error for what is no such file, and for one of another declaration.
KernelTimes read_kernel_times(const std::filesystem::path& file, const Model& model);

}  // namespace tessera::runtime
