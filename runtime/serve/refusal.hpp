// How the server says no.
#pragma once

#include <string>

#include "runtime/error.hpp"

namespace tessera::runtime::serve {

/// A request that gets no answer but this sentence, under an HTTP status code of 400 or more (RFC 9110, 15.5 and 15.6).
class Refusal : public Error {
 public:
  Refusal(int status, const std::string& sentence) : Error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Throws a Refusal whose sentence is made of the parts.
template <class... Parts>
[[noreturn]] void refuse(int status, const Parts&... parts) {
  throw Refusal(status, text(parts...));
}

}  // namespace tessera::runtime::serve
