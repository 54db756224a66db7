// Numbers on the command line, with what is said of those that are out of range.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"

namespace tessera::runtime {

inline std::string for_people(std::int64_t number) { return grouped(number); }
inline std::string for_people(double number) { return number < 1 ? shortest(number) : grouped(std::llround(number)); }

/// A number from `low` to `high`, which NaN is not; without its bounds in the help text, where they are noise.
template <class Number>
CLI::Validator in(Number low, Number high) {
  return {[=](std::string& given) {
            Number value{};
            const bool number = CLI::detail::lexical_cast(given, value);
            return number && value >= low && value <= high
                       ? std::string()
                       : text(printable(given), std::is_integral_v<Number> ? " is not an integer" : " is no number",
                              " from ", for_people(low), " to ", for_people(high));
          },
          ""};
}

}  // namespace tessera::runtime
