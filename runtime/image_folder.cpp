#include "runtime/image_folder.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/image.hpp"
#include "runtime/labels.hpp"
#include "runtime/parallel.hpp"
#include "runtime/preprocess.hpp"
#include "runtime/progress.hpp"

namespace tessera::runtime {
namespace {

std::filesystem::path split_folder(const std::filesystem::path& folder, Split split) {
  if (split == Split::train) return folder / "train";
  return std::filesystem::is_directory(folder / "test") ? folder / "test" : folder / "val";
}

/// The names of the folders in a folder; what is hidden does not count.
std::vector<std::string> classes_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const std::filesystem::path& path : list_folder(folder)) {
    const std::string name = path.filename().string();
    if (!name.starts_with('.') && std::filesystem::is_directory(path)) names.push_back(name);
  }
  if (names.empty()) fail("there are no folders in ", folder.string(), ": it needs one for each class");
  return names;
}

std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> pictures;
  for (const std::filesystem::path& path : list_folder(folder)) {
    std::string kind = path.extension().string();
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!path.filename().string().starts_with('.') && (kind == ".png" || kind == ".jpg" || kind == ".jpeg"))
      pictures.push_back(path);
  }
  if (pictures.empty()) fail("there are no PNG or JPEG pictures in ", folder.string());
  return pictures;
}

/// Files and the classes of their pictures, one of each class after the other.
std::vector<std::pair<std::filesystem::path, std::int32_t>> in_turns(const std::filesystem::path& folder,
                                                                     const std::vector<std::string>& classes) {
  std::vector<std::vector<std::filesystem::path>> pictures(classes.size());
  for (const std::string& name : classes_in(folder)) {
    const auto known = std::find(classes.begin(), classes.end(), name);
    if (known == classes.end())
      fail(folder.string(), " has a class '", name, "', which the folder of training images does not have");
    pictures[static_cast<std::size_t>(known - classes.begin())] = pictures_in(folder / name);
  }
  std::vector<std::pair<std::filesystem::path, std::int32_t>> result;
  std::size_t most = 0;
  for (const auto& own : pictures) most = std::max(most, own.size());
  for (std::size_t turn = 0; turn < most; ++turn)
    for (std::size_t c = 0; c < classes.size(); ++c)
      if (turn < pictures[c].size()) result.emplace_back(pictures[c][turn], static_cast<std::int32_t>(c));
  return result;
}

}  // namespace

bool is_image_folder(const std::filesystem::path& folder) {
  for (const char* name : {"train", "test", "val"})
    if (std::filesystem::is_directory(folder / name)) return true;
  return false;
}

Dataset read_image_folder(const std::filesystem::path& folder, Split split, const Model& model,
                          const Preprocessing& input, std::int64_t limit, const Room& room) {
  const std::filesystem::path from = split_folder(folder, split);
  if (!std::filesystem::is_directory(from))
    fail("the image folder ", folder.string(), " has no folder ", split == Split::train ? "train" : "test or val");
  Dataset data;
  data.names = classes_in(std::filesystem::is_directory(folder / "train") ? folder / "train" : from);
  data.classes = static_cast<std::int64_t>(data.names.size());
  data.source = text("the image folder ", folder.string(), ", ", data.classes, " classes");
  data.channels = model.image_shape[0];
  data.height = model.image_shape[1];
  data.width = model.image_shape[2];
  std::vector<std::filesystem::path> paths;
  for (auto& [path, label] : in_turns(from, data.names)) {
    if (limit > 0 && data.size() == limit) break;
    paths.push_back(std::move(path));
    data.labels.push_back(label);
  }
  for (std::string& name : data.names) name = without_controls(name);
  const std::int64_t bytes = size_product({data.size(), data.image_size()});
  if (room) {
    data.mapping = room(bytes);
    data.mapped = {data.mapping.get(), static_cast<std::size_t>(bytes)};
  } else {
    data.pixels.resize(static_cast<std::size_t>(bytes));
  }
  std::uint8_t* const pixels = room ? data.mapping.get() : data.pixels.data();
  Counter counter(text("reading ", name(split), " pictures"), data.size());
  parallel_for(data.size(), [&](std::int64_t i) {
    const std::filesystem::path& path = paths[static_cast<std::size_t>(i)];
    const Image image = prepared(decode_image(read_file(path, longest_picture), data.channels, path.string()), input,
                                 data.height, data.width);
    std::ranges::copy(image.pixels, pixels + i * data.image_size());
#ifdef _OPENMP
#pragma omp critical
#endif
    counter.add(1);
  });
  return data;
}

}  // namespace tessera::runtime
