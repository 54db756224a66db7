// The beginnings of an SVG picture.
#pragma once

#include <string>
#include <string_view>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {

/// Where a page is dark, so are the pictures in it: rules for the four colours that ground, ink and lines have, and for
/// the words of right and wrong answers. Without CSS they stay as they are.
inline constexpr const char* svg_dark_mode =
    "<style>@media (prefers-color-scheme: dark) { rect[fill=\"#fff\"] { fill: #16181c; } [fill=\"#333\"] { fill: "
    "#d8dadf; "
    "} [stroke=\"#333\"] { stroke: #d8dadf; } [stroke=\"#e4e4e4\"] { stroke: #33373d; } rect[fill=\"#ddd\"] { fill: "
    "#33373d; "
    "} text[fill=\"#2e7d4f\"] { fill: #6fce96; } text[fill=\"#c0392b\"] { fill: #ff8a7a; } }</style>\n";

/// The opening element: white ground, one font; no wider than what it is shown in.
inline std::string svg_begin(double width, double height) {
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" width=\"",
              fixed(width, 0), "\" height=\"", fixed(height, 0), "\" viewBox=\"0 0 ", fixed(width, 0), " ",
              fixed(height, 0),
              "\" style=\"max-width:100%;height:auto\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" "
              "font-size=\"13\" fill=\"#333\">\n",
              svg_dark_mode, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
}

/// Text at a place; `attributes` stand in the element as they are.
inline std::string svg_text(double x, double y, const std::string& content, const std::string& attributes) {
  std::string safe;
  for (const char c : content) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return text("<text x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\"", attributes.empty() ? "" : " ", attributes, ">",
              safe, "</text>\n");
}

/// How wide a line of UTF-8 is at most, in ems of the widest of the fonts that svg_begin names, DejaVu Sans; a bold one
/// is wider by a factor of `bold_ems`. Characters are of a few widths, so that the sum is up to a third too large.
double ems(std::string_view line);
inline constexpr double bold_ems = 1.14;

/// The beginning of a line that is wider than so many ems, with an ellipsis, or its end; no character is cut.
std::string beginning(const std::string& line, double most);
std::string ending(const std::string& line, double most);

/// A picture inside the picture: the bytes of a PNG file at a place, its pixels kept sharp.
std::string svg_png(double x, double y, double width, double height, const Bytes& png);

}  // namespace tessera::runtime
