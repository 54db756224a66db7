// What the generator throws: one clear sentence.
#pragma once

#include <stdexcept>

namespace tessera::codegen {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tessera::codegen
