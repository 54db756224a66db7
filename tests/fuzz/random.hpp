// What the custom mutators share: choices, and numbers at the edges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace tessera::test {

class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t end) { return end ? random_() % end : 0; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  /// An element of an array or container.
  template <class All>
  auto& of(All& all) {
    return *std::next(std::begin(all), static_cast<std::ptrdiff_t>(below(std::size(all))));
  }
  /// Numbers as text: at the edges of 32 and 64 bits, beside zero and one, not finite, not quite numbers.
  std::string number() {
    static const char* const edges[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "10",
                                        "127",
                                        "4294967295",
                                        "4294967296",
                                        "2147483648",
                                        "4611686018427387904",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "-9223372036854775808",
                                        "0.5",
                                        "5e-4",
                                        "1e-300",
                                        "1e300",
                                        "1e999",
                                        "inf",
                                        "-inf",
                                        "nan",
                                        "-0",
                                        "",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "0x10",
                                        "1,5",
                                        "999999",
                                        "1000000",
                                        "1000001"};
    return of(edges);
  }
  /// A size: small ones, and those whose products overflow.
  std::int64_t size() {
    static const std::int64_t edges[] = {0,
                                         1,
                                         2,
                                         3,
                                         4,
                                         28,
                                         784,
                                         -1,
                                         255,
                                         256,
                                         65535,
                                         65536,
                                         std::int64_t{1} << 31,
                                         std::int64_t{1} << 32,
                                         std::int64_t{1} << 40,
                                         std::int64_t{1} << 62,
                                         INT64_MAX,
                                         INT64_MIN};
    return of(edges);
  }

 private:
  std::minstd_rand random_;
};

}  // namespace tessera::test
