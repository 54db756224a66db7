#include "runtime/idx.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/gzip.hpp"

namespace tessera::runtime {
namespace {

constexpr std::uint64_t longest_file = std::uint64_t{1} << 31;

std::uint32_t big_endian(std::span<const std::uint8_t> four) {
  return static_cast<std::uint32_t>(four[0]) << 24 | static_cast<std::uint32_t>(four[1]) << 16 |
         static_cast<std::uint32_t>(four[2]) << 8 | four[3];
}

std::size_t header_bytes(const Shape& shape) { return 4 + 4 * shape.size(); }

/// What the header declares: as many sizes as the magic number says, none of them zero.
Shape shape_in(std::span<const std::uint8_t> content, const std::string& where) {
  if (content.size() < 4) fail(where, " is truncated: it has ", content.size(), " bytes, an IDX file begins with 4");
  const std::uint32_t magic = big_endian(content);
  if (magic != 0x00000801 && magic != 0x00000803) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08X", static_cast<unsigned>(magic));
    fail(where, " is not an IDX file of labels or images: it begins with ", digits, " instead of 00000801 or 00000803");
  }
  Shape shape(magic & 0xff);
  if (content.size() < header_bytes(shape))
    fail(where, " is truncated: it has ", content.size(), " bytes, its IDX header alone needs ", header_bytes(shape));
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = big_endian(content.subspan(4 + 4 * i));
  if (elements(shape) == 0) fail(where, " declares the size ", printed(shape), ", which holds nothing");
  return shape;
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

std::uint64_t idx_bytes(std::span<const std::uint8_t> first, const std::string& where) {
  const Shape shape = shape_in(first, where);
  const std::int64_t expected = elements(shape);
  if (expected < 0 || static_cast<std::uint64_t>(expected) > longest_file)
    fail(where, " declares the size ", printed(shape), ", which is more than the ", longest_file,
         " bytes that are accepted here");
  return header_bytes(shape) + static_cast<std::uint64_t>(expected);
}

Idx parse_idx(Bytes content, const std::string& where) {
  Idx idx;
  idx.shape = shape_in(content, where);
  const std::int64_t expected = elements(idx.shape);
  const std::uint64_t bytes = content.size() - header_bytes(idx.shape);
  if (expected < 0 || static_cast<std::uint64_t>(expected) > bytes)
    fail(where, " is truncated: it declares ", printed(idx.shape), " and has ", bytes, " bytes of data",
         expected < 0 ? "" : text(" instead of ", expected));
  if (static_cast<std::uint64_t>(expected) < bytes)
    fail(where, " has ", bytes - static_cast<std::uint64_t>(expected), " bytes after the data that ",
         printed(idx.shape), " declares");
  content.erase(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(header_bytes(idx.shape)));
  idx.data = std::move(content);
  return idx;
}

Idx read_idx(const std::filesystem::path& path) {
  const std::string where = path.string();
  return parse_idx(read_packed_file(path, longest_file, [&](auto first) { return idx_bytes(first, where); }), where);
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
