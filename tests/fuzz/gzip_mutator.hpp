// Mutants of files that may be packed: packed ones are unpacked, changed and packed again, so that a change gets behind
// the checksums of gzip.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/fuzz/random.hpp"

namespace tessera::test {

inline std::string unpacked(const std::uint8_t* data, std::size_t size) {
  std::string out(1 << 16, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, 16 + 15) != Z_OK) return {};
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

inline std::string packed(const std::string& plain) {
  std::string out(plain.size() + plain.size() / 100 + 128, '\0');
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Changes what lies in the file by `change`, of a std::string and the choices; packs it, or no longer, now and then.
template <class Change>
std::size_t mutate_packed(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed, const Change& change) {
  Choices choices(seed);
  if (choices.one_in(8)) return LLVMFuzzerMutate(data, size, most);
  bool is_packed = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
  std::string plain = is_packed ? unpacked(data, size) : std::string(reinterpret_cast<char*>(data), size);
  if (choices.one_in(3)) {
    const std::size_t old = plain.size();
    plain.resize(std::max<std::size_t>(old + 64, 64));
    plain.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(plain.data()), old, plain.size()));
  } else {
    change(plain, choices);
  }
  if (choices.one_in(8)) is_packed = !is_packed;
  std::string file = is_packed ? packed(plain) : plain;
  if (is_packed && choices.one_in(8)) file += packed(plain);  // a second member
  size = std::min(most, file.size());
  std::memcpy(data, file.data(), size);
  return size;
}

}  // namespace tessera::test
