#include "runtime/labels.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "runtime/error.hpp"
#include "runtime/file.hpp"

namespace tessera::runtime {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t longest_list = std::uint64_t{1} << 24;

/// What timm's config.json calls the classes, described where it describes them, and Hugging Face's; else all of it.
Json classes_in(const Json& json) {
  if (json.is_object() && json.contains("id2label")) return json["id2label"];
  if (!json.is_object() || !json.contains("label_names")) return json;
  Json names = json["label_names"];
  const Json described = json.value("label_descriptions", Json::object());
  for (Json& name : names)
    if (name.is_string() && described.is_object() && described.contains(name.get<std::string>()))
      name = described[name.get<std::string>()];
  return names;
}

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

/// Takes the next row of a CSV text (RFC 4180): fields between commas, those in quotes with commas and "" for a quote.
std::vector<std::string> next_row(std::string_view& rest) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  std::size_t i = 0;
  for (; i < rest.size() && (quoted || rest[i] != '\n'); ++i) {
    if (quoted && rest.substr(i, 2) == "\"\"")
      fields.back() += rest[i++];
    else if (rest[i] == '"')
      quoted = !quoted;
    else if (rest[i] == ',' && !quoted)
      fields.emplace_back();
    else if (rest[i] != '\r' || quoted)
      fields.back() += rest[i];
  }
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return fields;
}

/// Of rows "number,...,name" in any order, behind a row of headings or without one.
std::vector<std::string> names_of_csv(std::string_view rest, const std::string& where, std::int64_t classes) {
  std::map<std::int64_t, std::string> names;
  for (std::int64_t row = 1; !rest.empty(); ++row) {
    const std::vector<std::string> fields = next_row(rest);
    if (fields.size() == 1 && fields[0].empty()) continue;
    const std::string& number = fields.front();
    std::int64_t label = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), label);
    const bool is_number = error == std::errc() && end == number.data() + number.size();
    if (row == 1 && !is_number) continue;
    if (!is_number || fields.size() < 2 || label < 0 || label >= classes)
      fail(where, ": row ", row, " is no number of a class from 0 to ", classes - 1, ", a comma and its name");
    if (!names.emplace(label, without_controls(fields.back())).second)
      fail(where, ": row ", row, " names class ", label, " again");
  }
  std::vector<std::string> all;
  for (const auto& [label, name] : names) all.push_back(name);
  return all;
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

std::string lines_of_names(const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += without_controls(name) + '\n';
  return lines.erase(lines.find_last_not_of('\n') + 1);
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
    names = names_of_json(classes_in(json), path.string());
  } else if (path.extension() == ".csv") {
    names = names_of_csv(all, path.string(), classes);
  } else {
    names = names_of_lines(all);
  }
  if (static_cast<std::int64_t>(names.size()) != classes)
    fail(path.string(), " has ", names.size(), " names, the model tells ", classes, " classes apart");
  return names;
}

}  // namespace tessera::runtime
