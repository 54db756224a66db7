#include "runtime/svg.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace tessera::runtime {
namespace {

std::string base64(const Bytes& content) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < content.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(3, content.size() - i);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k) three = three << 8 | (k < left ? content[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= left ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// Whether this byte of UTF-8 goes on with a character.
bool continues(char c) { return (c & 0xc0) == 0x80; }

/// A width in ems with the character that begins with this byte.
double wider(double width, char c) {
  constexpr std::string_view thin = " 'Iijl", narrow = "!(),-./:;[\\]frt|", wide = "%@MWmw";
  if (continues(c)) return width;
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80) return width + 1.1;
  if (wide.find(c) != wide.npos) return width + 1;
  if (thin.find(c) != thin.npos) return width + 0.33;
  if (narrow.find(c) != narrow.npos) return width + 0.44;
  return width + (std::islower(byte) || std::isdigit(byte) ? 0.64 : 0.84);
}

}  // namespace

double ems(std::string_view line) { return std::accumulate(line.begin(), line.end(), 0.0, wider); }

std::string beginning(const std::string& line, double most) {
  if (ems(line) <= most) return line;
  std::size_t end = 0;
  for (double sum = 1; end < line.size() && (sum = wider(sum, line[end])) <= most;) ++end;
  return line.substr(0, end) + "…";
}

std::string ending(const std::string& line, double most) {
  if (ems(line) <= most) return line;
  std::size_t first = line.size();
  for (double sum = 1; first > 0 && (sum = wider(sum, line[first - 1])) <= most;) --first;
  while (first < line.size() && continues(line[first])) ++first;
  return "…" + line.substr(first);
}

std::string svg_png(double x, double y, double width, double height, const Bytes& png) {
  return text("<image x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\" width=\"", fixed(width, 1), "\" height=\"",
              fixed(height, 1), "\" style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64,",
              base64(png), "\"/>\n");
}

}  // namespace tessera::runtime
