#include "runtime/svg.hpp"

#include <algorithm>
#include <cstdint>

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

}  // namespace

std::string shortened(const std::string& content, std::size_t most) {
  if (content.size() <= most) return content;
  std::size_t end = most;
  while (end > 0 && (content[end] & 0xc0) == 0x80) --end;
  return content.substr(0, end) + "...";
}

std::string svg_png(double x, double y, double width, double height, const Bytes& png) {
  return text("<image x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\" width=\"", fixed(width, 1), "\" height=\"",
              fixed(height, 1), "\" style=\"image-rendering:pixelated\" xlink:href=\"data:image/png;base64,",
              base64(png), "\"/>\n");
}

}  // namespace tessera::runtime
