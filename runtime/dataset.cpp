#include "runtime/dataset.hpp"

#include <zlib.h>

#include <array>

namespace tessera::runtime {

const char* name(Split split) { return split == Split::train ? "training" : "test"; }

void Dataset::keep(std::int64_t count) {
  if (count >= size()) return;
  labels.resize(static_cast<std::size_t>(count));
  pixels.resize(static_cast<std::size_t>(count * image_size()));
}

std::uint32_t Dataset::fingerprint() const {
  uLong crc = crc32_z(0, nullptr, 0);
  crc = crc32_z(crc, pixels.data(), pixels.size());
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(labels.data()), labels.size() * sizeof(labels[0]));
  return static_cast<std::uint32_t>(crc);
}

void normalize(std::span<const std::uint8_t> pixels, double mean, double deviation, float* images) {
  std::array<float, 256> value;
  for (std::size_t i = 0; i < value.size(); ++i)
    value[i] = static_cast<float>((static_cast<double>(i) / 255 - mean) / deviation);
  for (std::size_t i = 0; i < pixels.size(); ++i) images[i] = value[pixels[i]];
}

}  // namespace tessera::runtime
