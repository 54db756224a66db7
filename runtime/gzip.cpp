#include "runtime/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::size_t start_bytes = 16;

class Inflater {
 public:
  Inflater() : ready_(inflateInit2(&stream_, 15 + 16) == Z_OK) {
    if (!ready_) fail("zlib cannot be started: out of memory");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
  bool ready_;
};

}  // namespace

Bytes unpack_gzip(std::span<const std::uint8_t> packed, std::uint64_t limit, const std::string& where,
                  const DeclaredBytes& declared) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  Bytes content;
  std::array<std::uint8_t, 1 << 16> chunk;
  std::size_t fed = 0;
  bool by_header = false;
  for (;;) {
    if (stream.avail_in == 0 && fed < packed.size()) {
      const std::size_t part = std::min<std::size_t>(packed.size() - fed, std::size_t{1} << 30);
      stream.next_in =
          const_cast<Bytef*>(packed.data() + fed);  // zlib does not write here: its C signature predates const
      stream.avail_in = static_cast<uInt>(part);
      fed += part;
    }
    stream.next_out = chunk.data();
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int result = inflate(&stream, Z_NO_FLUSH);
    const std::size_t made = chunk.size() - stream.avail_out;
    content.insert(content.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(made));
    if (declared && !by_header && content.size() >= start_bytes)
      limit = std::min(limit, declared(content)), by_header = true;
    if (content.size() > limit)
      fail(where, " unpacks to more than the ", limit, " bytes that ",
           by_header ? "its header declares" : "are accepted here");
    const bool all_fed = stream.avail_in == 0 && fed == packed.size();
    if (result == Z_STREAM_END) {
      if (all_fed) return content;
      if (inflateReset(&stream) != Z_OK) fail(where, " cannot be unpacked: zlib cannot be restarted");
    } else if (result == Z_BUF_ERROR || (result == Z_OK && all_fed && made == 0)) {
      fail(where, " is truncated: its gzip data ends too early");
    } else if (result != Z_OK) {
      fail(where, " is not valid gzip data: ", stream.msg ? stream.msg : "it is damaged");
    }
  }
}

Bytes read_packed_file(const std::filesystem::path& path, std::uint64_t limit, const DeclaredBytes& declared) {
  const InputFile file(path);
  std::array<std::uint8_t, start_bytes> start{};
  const auto first = std::span(start).first(std::min<std::uint64_t>(file.size(), start_bytes));
  file.read(0, first);
  if (start[0] == 0x1f && start[1] == 0x8b) return unpack_gzip(read_file(file, limit), limit, file.where(), declared);
  if (declared && first.size() == start_bytes)
    if (const std::uint64_t bytes = declared(first); file.size() > bytes)
      fail(file.where(), " has ", file.size() - bytes, " bytes after the data that its header declares");
  return read_file(file, limit);
}

}  // namespace tessera::runtime
