#include "runtime/dataset.hpp"

#include <zlib.h>

namespace tessera::runtime {

const char* name(Split split) { return split == Split::train ? "training" : "test"; }

std::string Dataset::called(std::int64_t label) const {
  const auto at = static_cast<std::size_t>(label);
  return at < names.size() ? names[at] : std::to_string(label);
}

void Dataset::keep(std::int64_t count) {
  if (count >= size()) return;
  labels.resize(static_cast<std::size_t>(count));
  if (mapping)
    mapped = mapped.first(static_cast<std::size_t>(count * image_size()));
  else
    pixels.resize(static_cast<std::size_t>(count * image_size()));
  known_fingerprint.reset();
}

std::uint32_t Dataset::fingerprint() const {
  if (known_fingerprint) return *known_fingerprint;
  uLong crc = crc32_z(0, nullptr, 0);
  crc = crc32_z(crc, bytes().data(), bytes().size());
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(labels.data()), labels.size() * sizeof(labels[0]));
  return static_cast<std::uint32_t>(crc);
}

}  // namespace tessera::runtime
