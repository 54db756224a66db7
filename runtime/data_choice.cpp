#include "runtime/data_choice.hpp"

#include <algorithm>

#include "runtime/digits.hpp"
#include "runtime/idx.hpp"

namespace tessera::runtime {

Dataset load(const DataChoice& choice, Split split) {
  // The training seed does not choose the digits: runs of several seeds are then comparable.
  constexpr std::uint64_t digits_seed = 1;
  const auto several = [](std::int64_t count) { return std::max<std::int64_t>(count, 1); };
  const std::int64_t drawn = split == Split::train ? choice.digits : several(choice.digits / 6);
  Dataset data = choice.folder.empty() ? draw_digits(drawn, digits_seed, split) : read_mnist(choice.folder, split);
  if (choice.limit > 0) data.keep(choice.limit);
  return data;
}

}  // namespace tessera::runtime
