// Numbers as text, the same in every locale.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::runtime {

/// With `digits` digits after the point: fixed(0.5, 2) is "0.50".
std::string fixed(double value, int digits);

/// percent(0.5) is "50.00%".
std::string percent(double share);

/// A probability in percent, "98.3%": what is neither 0 nor 1 is not rounded to them, but ">99.9%" and "<0.1%".
std::string probability(double value);

/// With at most six significant digits: what a table of a curve needs.
std::string shortest(double value);

/// The number that `shortest` writes: what is read back from a table is then exactly what was written.
double rounded(double value);

/// 60000 is "60,000".
std::string grouped(std::int64_t value);

/// "0:07", "12:30", "1:02:03".
std::string duration(double seconds);

/// "7.4 KiB", "1.2 GiB"
std::string bytes(std::int64_t count);

/// The text filled with spaces in front (or behind, for a negative width) to |width| characters.
std::string padded(const std::string& text, int width);

}  // namespace tessera::runtime
