#include "runtime/numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace tessera::runtime {

std::string fixed(double value, int digits) {
  char buffer[400];
  const auto end = std::to_chars(buffer, std::end(buffer), value, std::chars_format::fixed, digits).ptr;
  return {buffer, end};
}

std::string percent(double share) { return fixed(100 * share, 2) + "%"; }

std::string probability(double value) {
  const std::string shown = fixed(100 * value, 1);
  return value < 1 && shown == "100.0" ? ">99.9%" : value > 0 && shown == "0.0" ? "<0.1%" : shown + "%";
}

std::string shortest(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, std::end(buffer), value, std::chars_format::general, 6).ptr;
  return {buffer, end};
}

double rounded(double value) {
  const std::string text = shortest(value);
  double result = 0;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

std::string grouped(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (left % 3 == 0 && i > (value < 0 ? 1u : 0u)) out += ',';
    out += digits[i];
  }
  return out;
}

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::fmin(std::fmax(seconds, 0), 1e9)));
  const auto two = [](std::int64_t n) {
    return std::string{static_cast<char>('0' + n / 10), static_cast<char>('0' + n % 10)};
  };
  if (whole < 3600) return std::to_string(whole / 60) + ':' + two(whole % 60);
  return std::to_string(whole / 3600) + ':' + two(whole / 60 % 60) + ':' + two(whole % 60);
}

std::string bytes(std::int64_t count) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (count < 1024) return std::to_string(count) + " " + units[0];
  double value = static_cast<double>(count);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fixed(value, 1) + " " + units[unit];
}

std::string padded(const std::string& text, int width) {
  const auto wanted = static_cast<std::size_t>(std::abs(width));
  const std::string fill(wanted > text.size() ? wanted - text.size() : 0, ' ');
  return width > 0 ? fill + text : text + fill;
}

}  // namespace tessera::runtime
