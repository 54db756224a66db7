// The report of a training run as one HTML file that needs no other.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// Small pictures below a heading, as many in a row as there is room for.
struct Tiles {
  std::string heading;
  std::vector<std::string> pictures;
};

/// What a section of the report shows: a table of names and values, pictures (SVG elements, side by side where the page
/// is wide enough, scrolled where one alone is too wide), text as it stands.
struct Section {
  std::string title;
  std::vector<std::pair<std::string, std::string>> rows;
  std::vector<std::string> pictures;
  std::string text;
  std::vector<Tiles> tiles{};
};

/// The sections, one below the other, as valid HTML 5 that is valid XML too. Nothing is loaded from anywhere.
std::string html_report(const std::string& title, const std::string& result, const std::vector<Section>& sections);

/// This machine in a few rows: processor, cores, threads, system.
std::vector<std::pair<std::string, std::string>> machine_rows();

}  // namespace tessera::runtime
