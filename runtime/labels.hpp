// The names of classes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::runtime {

/// A name without characters that a terminal would obey: blanks stand in their place.
std::string without_controls(std::string name);

/// One name a line, each without_controls; empty lines at the end do not count.
std::vector<std::string> names_of_lines(std::string_view content);

/// What names_of_lines reads: empty names at the end are left out, with their lines.
std::string lines_of_names(const std::vector<std::string>& names);

/// The names in a file: one a line (timm's imagenet_classes.txt); of a .csv, rows that begin with the number of a class
/// and end with its name, also behind a row of headings; or JSON: a list of names, or an object whose keys are the
/// numbers from 0 on, each with a name or with a list that ends in one (as in ImageNet's {"0": ["n01440764",
/// "tench"]}), or a config.json with timm's label_names and label_descriptions, or Hugging Face's id2label. Throws an
/// Error that names the file when it is none of these, or has not a name for each of `classes` classes.
std::vector<std::string> read_labels(const std::filesystem::path& path, std::int64_t classes);

}  // namespace tessera::runtime
