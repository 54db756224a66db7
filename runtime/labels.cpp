#include "runtime/labels.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/error.hpp"
#include "runtime/file.hpp"

namespace tessera::runtime {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t longest_list = std::uint64_t{1} << 24;

std::vector<std::string> names_of_json(const Json& json, const std::string& where) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto entry = json.is_array() ? json.begin() + static_cast<std::ptrdiff_t>(i) : json.find(std::to_string(i));
    if (entry == json.end()) fail(where, " has no name for class ", i);
    const Json& name = entry->is_array() && !entry->empty() ? entry->back() : *entry;
    if (!name.is_string()) fail(where, ": the name of class ", i, " is no text");
    names.push_back(without_controls(name.get<std::string>()));
  }
  return names;
}

}  // namespace

std::string without_controls(std::string name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c < 0x20 || c == 0x7f) name[i] = ' ';
    // U+0080 to U+009F in UTF-8, of which one begins a terminal's commands
    if (c == 0xc2 && i + 1 < name.size() && static_cast<unsigned char>(name[i + 1]) < 0xa0) name[i] = name[i + 1] = ' ';
  }
  return name;
}

std::vector<std::string> names_of_lines(std::string_view content) {
  std::vector<std::string> names;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    names.push_back(without_controls(std::string(line)));
    content.remove_prefix(std::min(end + 1, content.size()));
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

std::vector<std::string> read_labels(const std::filesystem::path& path, std::int64_t classes) {
  const Bytes content = read_file(path, longest_list);
  const std::string_view all(reinterpret_cast<const char*>(content.data()), content.size());
  const std::size_t first = all.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && (all[first] == '[' || all[first] == '{');
  if (all.find('\0') != std::string_view::npos) fail(path.string(), " is no text: names of classes cannot be read");
  std::vector<std::string> names;
  if (is_json) {
    const Json json = Json::parse(all.begin(), all.end(), nullptr, false);
    if (json.is_discarded()) fail(path.string(), " begins as JSON, but is none: names of classes cannot be read");
    names = names_of_json(json, path.string());
  } else {
    names = names_of_lines(all);
  }
  if (static_cast<std::int64_t>(names.size()) != classes)
    fail(path.string(), " has ", names.size(), " names, the model tells ", classes, " classes apart");
  return names;
}

}  // namespace tessera::runtime
