// Texts that are read by their words or lines.
#pragma once

#include <ios>
#include <sstream>
#include <string>

namespace tessera::runtime {

/// Reads a text word by word or line by line. Throws std::bad_alloc where there is no memory for one: a stream would
/// otherwise take that for its end, and lose the rest in silence.
class TextReader : public std::istringstream {
 public:
  explicit TextReader(const std::string& of) : std::istringstream(of) { exceptions(std::ios::badbit); }
};

}  // namespace tessera::runtime
