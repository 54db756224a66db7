// The page of a model: what its program's `summary --html` writes. The generator makes it (emit_page in codegen/emit)
// as a source of its own, which is linked into the program alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// A kernel of the page: what its time is found by, and what it should take.
struct PageKernel {
  const char* program;    ///< "forward" or "loss_and_gradients"
  const char* name;       ///< as the page shows it
  const char* functions;  ///< of the emitted file, with blanks between them; kernels of the same text share theirs
  std::int64_t flops;     ///< of an image, in all layers together
};

/// Makes the page known to the program that it is linked into: one object for each, before main. The texts, one after
/// the other, are HTML, in which <!--time PROGRAM KERNEL--> stands where a measured time belongs. All must outlive the
/// program.
class Page {
 public:
  Page(std::span<const char* const> texts, std::span<const PageKernel> kernels);
};

/// The page that is linked in, with the times that `bench --kernels` left in a file, unless that is empty. Throws an
/// Error where the program was built without, or where the times are not this model's.
std::string page_of(const Model& model, const std::filesystem::path& times = {});

/// The kernels of the page. Throws an Error where the program was built without.
std::span<const PageKernel> kernels_of(const Model& model);

}  // namespace tessera::runtime
