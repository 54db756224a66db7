#include "runtime/cifar.hpp"

#include "runtime/error.hpp"
#include "runtime/gzip.hpp"

namespace tessera::runtime {
namespace {

constexpr std::uint64_t longest_file = std::uint64_t{1} << 28;  // all 50,000 training images are 154 MB
constexpr std::int64_t channels = 3, side = 32, classes = 10;
constexpr std::size_t pixels = channels * side * side, record = 1 + pixels;

}  // namespace

void parse_cifar(std::span<const std::uint8_t> content, const std::string& where, Dataset& data) {
  if (content.empty()) fail(where, " is empty: a CIFAR-10 file has ", record, " bytes for each image");
  if (content.size() % record != 0)
    fail(where, " is truncated or not of CIFAR-10: it has ", content.size(), " bytes, no multiple of the ", record,
         " of an image");
  for (std::size_t i = 0; i < content.size() / record; ++i) {
    const auto one = content.subspan(i * record, record);
    if (one[0] >= classes)
      fail(where, ": the label of image ", i, " is ", int{one[0]}, ", CIFAR-10's end at ", classes - 1);
    data.labels.push_back(one[0]);
    data.pixels.insert(data.pixels.end(), one.begin() + 1, one.end());
  }
}

std::vector<std::filesystem::path> cifar_files(const std::filesystem::path& folder, Split split) {
  std::vector<std::filesystem::path> found;
  for (const std::filesystem::path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    const bool test = name.find("test") != std::string::npos;
    const bool train = !test && (name.starts_with("data_batch") || name.find("train") != std::string::npos);
    if ((name.ends_with(".bin") || name.ends_with(".bin.gz")) && (split == Split::train ? train : test))
      found.push_back(path);
  }
  return found;
}

Dataset read_cifar(const std::filesystem::path& folder, Split split) {
  Dataset data;
  data.source = "CIFAR-10 in " + folder.string();
  data.channels = channels;
  data.height = data.width = side;
  data.classes = classes;
  data.names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  const std::vector<std::filesystem::path> files = cifar_files(folder, split);
  if (files.empty())
    fail("there is no CIFAR-10 file of ", name(split), " images in ", folder.string(), ": ",
         split == Split::train ? "data_batch_1.bin to data_batch_5.bin" : "test_batch.bin", ", plain or .gz");
  for (const std::filesystem::path& path : files)
    parse_cifar(read_packed_file(path, longest_file), path.string(), data);
  return data;
}

}  // namespace tessera::runtime
