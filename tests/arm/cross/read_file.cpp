// What the tests need of runtime/file.hpp, without zlib, which has no package for a cross compiler.
#include <fstream>
#include <iterator>

#include "runtime/error.hpp"
#include "runtime/file.hpp"

namespace tessera::runtime {

Bytes read_file(const std::filesystem::path& path, std::uint64_t) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error("cannot read " + path.string());
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

}  // namespace tessera::runtime
