// The report of a training run as one HTML file that needs no other.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// What a section of the report shows: a table of names and values, pictures (SVG elements), text as it stands.
struct Section {
  std::string title;
  std::vector<std::pair<std::string, std::string>> rows;
  std::vector<std::string> pictures;
  std::string text;
};

/// The sections, one below the other, as valid HTML 5 that is valid XML too. Nothing is loaded from anywhere.
std::string html_report(const std::string& title, const std::string& result, const std::vector<Section>& sections);

/// This machine in a few rows: processor, cores, threads, system.
std::vector<std::pair<std::string, std::string>> machine_rows();

}  // namespace tessera::runtime
