// The page of a model: what its program's `summary --html` writes. The generator makes it (emit_page in codegen/emit)
// as a source of its own, which is linked into the program alone.
#pragma once

#include <span>
#include <string>

#include "runtime/model.hpp"

namespace tessera::runtime {

/// Makes the page known to the program that it is linked into: one object for each, before main. The texts, one after
/// the other, are HTML; they must outlive the program.
class Page {
 public:
  explicit Page(std::span<const char* const> texts);
};

/// The page that is linked in. Throws an Error where the program was built without.
std::string page_of(const Model& model);

}  // namespace tessera::runtime
