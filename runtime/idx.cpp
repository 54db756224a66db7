#include "runtime/idx.hpp"

#include <algorithm>
#include <cstdio>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

constexpr std::uint64_t longest_file = std::uint64_t{1} << 32;

std::uint32_t big_endian(std::span<const std::uint8_t> four) {
  return static_cast<std::uint32_t>(four[0]) << 24 | static_cast<std::uint32_t>(four[1]) << 16 |
         static_cast<std::uint32_t>(four[2]) << 8 | four[3];
}

Idx read_member(const std::filesystem::path& folder, const char* file, std::size_t rank) {
  std::filesystem::path path = folder / file;
  if (!std::filesystem::exists(path)) path += ".gz";
  if (!std::filesystem::exists(path)) fail("there is neither ", file, " nor ", file, ".gz in ", folder.string());
  Idx idx = read_idx(path);
  if (idx.shape.size() != rank)
    fail(path.string(), " holds ", idx.shape.size() == 1 ? "labels" : "images", " instead of ",
         rank == 1 ? "labels" : "images");
  return idx;
}

}  // namespace

Idx parse_idx(std::span<const std::uint8_t> content, const std::string& where) {
  if (content.size() < 4) fail(where, " is truncated: it has ", content.size(), " bytes, an IDX file begins with 4");
  const std::uint32_t magic = big_endian(content);
  if (magic != 0x00000801 && magic != 0x00000803) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08X", static_cast<unsigned>(magic));
    fail(where, " is not an IDX file of labels or images: it begins with ", digits, " instead of 00000801 or 00000803");
  }
  Idx idx;
  const std::size_t rank = magic & 0xff, header = 4 + 4 * rank;
  if (content.size() < header)
    fail(where, " is truncated: it has ", content.size(), " bytes, its IDX header alone needs ", header);
  for (std::size_t i = 0; i < rank; ++i) idx.shape.push_back(big_endian(content.subspan(4 + 4 * i)));
  const std::int64_t expected = elements(idx.shape);
  if (expected == 0) fail(where, " declares the size ", printed(idx.shape), ", which holds nothing");
  const auto data = content.subspan(header);
  if (expected < 0 || static_cast<std::uint64_t>(expected) > data.size())
    fail(where, " is truncated: it declares ", printed(idx.shape), " and has ", data.size(), " bytes of data",
         expected < 0 ? "" : text(" instead of ", expected));
  if (static_cast<std::uint64_t>(expected) < data.size())
    fail(where, " has ", data.size() - static_cast<std::uint64_t>(expected), " bytes after the data that ",
         printed(idx.shape), " declares");
  idx.data.assign(data.begin(), data.end());
  return idx;
}

Idx read_idx(const std::filesystem::path& path) {
  return parse_idx(read_packed_file(path, longest_file), path.string());
}

Dataset read_mnist(const std::filesystem::path& folder, Split split) {
  if (!std::filesystem::is_directory(folder)) fail("there is no folder ", folder.string());
  const bool train = split == Split::train;
  Idx images = read_member(folder, train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte", 3);
  const Idx labels = read_member(folder, train ? "train-labels-idx1-ubyte" : "t10k-labels-idx1-ubyte", 1);
  if (images.shape[0] != labels.shape[0])
    fail(folder.string(), " has ", images.shape[0], ' ', name(split), " images and ", labels.shape[0], " labels");
  Dataset data;
  data.source = "MNIST in " + folder.string();
  data.channels = 1;
  data.height = images.shape[1];
  data.width = images.shape[2];
  data.classes = 10;
  data.pixels = std::move(images.data);
  data.labels.assign(labels.data.begin(), labels.data.end());
  const auto wrong = std::find_if(data.labels.begin(), data.labels.end(), [](std::int32_t label) { return label > 9; });
  if (wrong != data.labels.end())
    fail(folder.string(), ": ", name(split), " label ", wrong - data.labels.begin(), " is ", *wrong,
         ", digits end at 9");
  return data;
}

}  // namespace tessera::runtime
