#include "runtime/packed_data.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "runtime/arena.hpp"
#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/metadata.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime {
namespace {

constexpr const char* packed_format = "tessera packed data 1";

SafetensorsHeader header_of(const InputFile& file) {
  try {
    return read_safetensors_header(file);
  } catch (const Error& error) {
    fail(file.where(), " holds no packed data, as pack makes it of a folder: ", error.what());
  }
}

std::string prefix(Split split) { return split == Split::train ? "train." : "test."; }

}  // namespace

void write_packed_data(const std::filesystem::path& path, const Dataset& train, const Dataset& test) {
  if (train.channels != test.channels || train.height != test.height || train.width != test.width ||
      train.classes != test.classes)
    fail("training and test images of ", train.source, " differ in shape or classes");
  std::map<std::string, std::string> metadata{{"format", packed_format},
                                              {"source", without_controls(train.source)},
                                              {"classes", std::to_string(train.classes)},
                                              {"class_names", lines_of_names(train.names)}};
  std::map<std::string, TensorView> tensors;
  for (const Split split : {Split::train, Split::test}) {
    const Dataset& data = split == Split::train ? train : test;
    metadata[prefix(split) + "fingerprint"] = std::to_string(data.fingerprint());
    tensors[prefix(split) + "pixels"] = {"U8", {data.size(), data.channels, data.height, data.width}, data.bytes()};
    tensors[prefix(split) + "labels"] = {
        "I32",
        {data.size()},
        {reinterpret_cast<const std::uint8_t*>(data.labels.data()), data.labels.size() * sizeof(data.labels[0])}};
  }
  write_safetensors(path, metadata, tensors);
}

bool is_packed_data(const std::filesystem::path& path) {
  try {
    const std::map<std::string, std::string> metadata = read_metadata(path);
    const auto format = metadata.find("format");
    return format != metadata.end() && format->second == packed_format;
  } catch (const Error&) {
    return false;
  }
}

Dataset read_packed_data(const std::filesystem::path& path, Split split) {
  const InputFile file(path);  // opened once: another may take its name meanwhile
  const std::string& where = file.where();
  const SafetensorsHeader header = header_of(file);
  const auto format = header.metadata.find("format");
  if (format == header.metadata.end() || format->second != packed_format)
    fail(where, " holds no packed data: pack makes such a file of a folder");
  const auto place = [&](const char* what, const char* dtype, std::size_t rank) -> const TensorPlace& {
    const auto found = header.tensors.find(prefix(split) + what);
    if (found == header.tensors.end()) fail(where, ": there are no ", name(split), ' ', what);
    if (found->second.dtype != dtype || found->second.shape.size() != rank)
      fail(where, ": the ", name(split), ' ', what, " are ", found->second.dtype, ' ', printed(found->second.shape));
    return found->second;
  };
  const TensorPlace &pixels = place("pixels", "U8", 4), &labels = place("labels", "I32", 1);
  if (elements(pixels.shape) < 1)
    fail(where, ": the ", name(split), " pixels are ", printed(pixels.shape), ", which holds nothing");
  if (pixels.shape[0] != labels.shape[0])
    fail(where, " has ", pixels.shape[0], ' ', name(split), " images and ", labels.shape[0], " labels");
  if (pixels.shape[0] > INT32_MAX)
    fail(where, " has ", pixels.shape[0], ' ', name(split), " images, more than the ", INT32_MAX,
         " that can be numbered");
  Dataset data;
  data.source = "packed data in " + where;
  data.channels = pixels.shape[1];
  data.height = pixels.shape[2];
  data.width = pixels.shape[3];
  const Metadata metadata(header.metadata, where, "packed data");
  data.classes = metadata.number<std::int64_t>("classes", 0, INT32_MAX);
  if (const auto names = header.metadata.find("class_names"); names != header.metadata.end() && !names->second.empty())
    data.names = names_of_lines(names->second);
  data.labels.resize(static_cast<std::size_t>(labels.shape[0]));
  file.read(labels.begin,
            {reinterpret_cast<std::uint8_t*>(data.labels.data()), data.labels.size() * sizeof(data.labels[0])});
  const auto wrong =
      std::ranges::find_if(data.labels, [&](std::int32_t label) { return label < 0 || label >= data.classes; });
  if (wrong != data.labels.end())
    fail(where, ": ", name(split), " label ", wrong - data.labels.begin(), " is ", *wrong, " of ", data.classes,
         " classes");
  data.known_fingerprint = metadata.number<std::uint32_t>(prefix(split) + "fingerprint", 0, UINT32_MAX);
  data.mapping = mapped(file, PROT_READ);
  data.mapped = {data.mapping.get() + pixels.begin, static_cast<std::size_t>(elements(pixels.shape))};
  return data;
}

std::shared_ptr<std::uint8_t> room_on_disk(const std::filesystem::path& folder, std::int64_t bytes) {
  std::string name = (folder / ".tessera-room-XXXXXX").string();
  const Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.number() < 0) fail("cannot write into ", folder.string(), ": ", reason(errno));
  ::unlink(name.c_str());
  // The disk has to have the room now: a full one would end the program while it is written to.
  if (const int failed = bytes > 0 ? ::posix_fallocate(file.number(), 0, bytes) : 0)
    fail("cannot write ", bytes, " bytes into ", folder.string(), ": ", reason(failed));
  return mapped(file.number(), static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, folder.string());
}

}  // namespace tessera::runtime
