#include "codegen/extent.hpp"

#include <fmt/format.h>

#include "codegen/error.hpp"
#include "dsl/text.hpp"

namespace tessera::codegen {

Extent extent(const Dim& dim) {
  Extent result;
  for (int i = 0; i < dim.normal.terms; ++i) {
    const Term& term = dim.normal.term[i];
    std::int64_t product = term.coefficient;
    int unsized = 0;
    for (int k = 0; k < term.factors; ++k)
      if (term.factor[k].extent)
        product *= term.factor[k].extent;
      else
        ++unsized;
    if (unsized > 1)
      throw Error(fmt::format("the dim {} is not linear in the batch, so its size cannot be planned", to_string(dim)));
    (unsized ? result.per_batch : result.fixed) += product;
  }
  return result;
}

std::string to_string(const Extent& e) {
  if (e.per_batch == 0) return fmt::format("{}", e.fixed);
  std::string batches = e.per_batch == 1 ? "batch" : fmt::format("{} * batch", e.per_batch);
  return e.fixed ? fmt::format("{} + {}", e.fixed, batches) : batches;
}

std::string to_string(const Dim& dim) {
  Text text;
  dim.print(text);
  return std::string(text.view());
}

}  // namespace tessera::codegen
