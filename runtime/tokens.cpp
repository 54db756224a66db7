#include "runtime/tokens.hpp"

#include "runtime/error.hpp"

namespace tessera::runtime {

void demand_tokens(std::span<const std::int32_t> tokens, std::int64_t positions, std::int64_t codes) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (positions < 1 || count % positions != 0)
    fail("there are ", count, " tokens, which are no whole number of images of ", positions);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    if (token < 0 || token >= codes)
      fail("token ", token, " of image ", i / positions, ", position ", i % positions, ", is none of the ", codes,
           " codes");
  }
}

std::vector<std::int32_t> tokens_of_numbers(std::span<const float> numbers, std::int64_t codes) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(numbers.size());
  for (const float number : numbers) {
    if (!(number >= 0 && number < static_cast<float>(codes)))
      fail("the encoder finds no nearest code: its parameters cannot be used");
    tokens.push_back(static_cast<std::int32_t>(number));
  }
  return tokens;
}

}  // namespace tessera::runtime
