// NAME_page.cpp: the page of the model, as text that its program writes.
#pragma once

#include <map>
#include <string>

#include "codegen/emit/model.hpp"

namespace tessera::codegen {

/// The page that the program's `summary --html` writes. HTML that needs no other file: what was declared
/// (the graph folded by module, named shapes, parameters, FLOPs) and what became of it (fusion, the memory plan over
/// time, the text of each kernel, which is taken from `kernels`, the emitted file of `target`; `standing`:
/// cpu/file.hpp).
std::string emit_page(const ModelFiles& model, const Target& target, const std::string& kernels,
                      const std::map<std::string, std::string>& standing);

}  // namespace tessera::codegen
