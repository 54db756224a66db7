// Sizes as the generator counts with them: a + b * batch.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/polynomial.hpp"

namespace tessera::codegen {

/// A number known at generation but for the batch: fixed + per_batch * batch.
struct Extent {
  std::int64_t fixed = 0;
  std::int64_t per_batch = 0;

  bool operator==(const Extent&) const = default;
  bool known() const { return per_batch == 0; }
  std::int64_t at(std::int64_t batch) const { return fixed + per_batch * batch; }
};

/// The extent of a dim. Throws Error when the dim is not linear in one axis without a size (the batch).
Extent extent(const Dim& dim);

/// As people write it: "50", "batch", "16 + 784 * batch".
std::string to_string(const Extent& extent);
/// The dim as people write it: "N+1=50".
std::string to_string(const Dim& dim);

}  // namespace tessera::codegen
