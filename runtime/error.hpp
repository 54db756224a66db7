// The one way in which the runtime says that something went wrong.
#pragma once

#include <exception>
#include <filesystem>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera::runtime {

/// What went wrong, as one clear sentence for the person at the terminal (no full stop, no newline).
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What went wrong on one rank, thrown on all of them: it has to be said but once.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// The parts one after the other as text; numbers as `std::ostream` prints them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // a stream without memory would otherwise lose the rest in silence
  (out << ... << parts);
  return out.str();
}

/// Throws an Error whose sentence is made of the parts.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}

/// The sentence of the exception that is being handled.
inline std::string sentence_of_error() {
  try {
    throw;
  } catch (const std::filesystem::filesystem_error& wrong) {
    return text("cannot open ", wrong.path1().string(), ": ", wrong.code().message());
  } catch (const std::bad_alloc&) {
    return "there is not enough memory";
  } catch (const std::exception& wrong) {
    return wrong.what();
  }
}

}  // namespace tessera::runtime
