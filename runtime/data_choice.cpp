#include "runtime/data_choice.hpp"

#include <algorithm>

#include "runtime/cifar.hpp"
#include "runtime/digits.hpp"
#include "runtime/error.hpp"
#include "runtime/idx.hpp"
#include "runtime/image_folder.hpp"
#include "runtime/packed_data.hpp"

namespace tessera::runtime {
namespace {

/// Of the kind that lies in the folder, which the name of one file or folder tells.
Dataset read(const std::filesystem::path& folder, Split split, const Model& model, const Preprocessing& input,
             std::int64_t limit, const Room& room) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(folder, unknown)) return read_packed_data(folder, split);
  for (const std::filesystem::path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (name.ends_with("-ubyte") || name.ends_with("-ubyte.gz")) return read_mnist(folder, split);
  }
  if (!cifar_files(folder, Split::train).empty() || !cifar_files(folder, Split::test).empty())
    return read_cifar(folder, split);
  if (is_image_folder(folder)) return read_image_folder(folder, split, model, input, limit, room);
  fail("there is no data set in ", folder.string(),
       ": neither MNIST's four IDX files, nor CIFAR-10's .bin files, nor folders train/CLASS and test/CLASS of PNG or "
       "JPEG pictures");
}

}  // namespace

Dataset load(const DataChoice& choice, Split split, const Model& model, const Preprocessing& input, const Room& room) {
  // The training seed does not choose the digits: runs of several seeds are then comparable.
  constexpr std::uint64_t digits_seed = 1;
  const auto several = [](std::int64_t count) { return std::max<std::int64_t>(count, 1); };
  const std::int64_t drawn = split == Split::train ? choice.digits : several(choice.digits / 6);
  Dataset data = choice.folder.empty() ? draw_digits(drawn, digits_seed, split)
                                       : read(choice.folder, split, model, input, choice.limit, room);
  if (choice.limit > 0) data.keep(choice.limit);
  return data;
}

}  // namespace tessera::runtime
