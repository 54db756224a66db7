#include <cstdint>
#include <span>

#include "runtime/raster.hpp"

namespace tessera::runtime {

int exif_orientation(std::span<const std::uint8_t> tiff) {
  if (tiff.size() < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return 1;
  const bool little = tiff[0] == 'I';
  // The number at a place; 0 beyond the end.
  const auto number = [&](std::uint64_t at, int bytes) {
    std::uint64_t value = 0;
    if (at + static_cast<std::uint64_t>(bytes) > tiff.size()) return value;
    for (int i = 0; i < bytes; ++i)
      value |= std::uint64_t{tiff[at + static_cast<std::uint64_t>(i)]} << 8 * (little ? i : bytes - 1 - i);
    return value;
  };
  constexpr std::uint64_t orientation_tag = 0x0112, entry_bytes = 12;
  const std::uint64_t directory = number(4, 4), entries = number(directory, 2);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + i * entry_bytes;
    if (number(entry, 2) != orientation_tag) continue;
    const std::uint64_t value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace tessera::runtime
