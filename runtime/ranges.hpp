// Numbers on the command line, with what is said of those that are out of range.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <system_error>
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

/// Any number of 64 bits: CLI11 takes -1 and 2^64 for one too.
inline CLI::Validator any_seed() {
  return {[](std::string& given) {
            std::uint64_t value = 0;
            const char* const end = given.data() + given.size();
            const auto [read, error] = std::from_chars(given.data(), end, value);
            return error == std::errc{} && read == end
                       ? std::string()
                       : text(printable(given), " is not an integer from 0 to 2^64 - 1");
          },
          ""};
}

}  // namespace tessera::runtime
