#include "runtime/html.hpp"

#include <sys/utsname.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <fstream>
#include <thread>

namespace tessera::runtime {
namespace {

std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

constexpr const char* head =
    R"html(<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<style>
:root { color-scheme: light dark; --ink: #333; --ground: #fff; --line: #ddd; --code: #f6f7f9; --result: #2e62a6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d8dadf; --ground: #16181c; --line: #33373d; --code: #1f2227; --result: #7fb0ee; }
}
body { font: 15px/1.5 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto; max-width: 1060px; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
h3 { font-size: 1rem; font-weight: 400; margin: 1rem 0 0.4rem; }
p.result { font-size: 1.15rem; margin: 0.2rem 0 1.5rem; color: var(--result); }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 600; padding: 0.15rem 2rem 0.15rem 0; vertical-align: top; white-space: nowrap; }
td { padding: 0.15rem 0; font-variant-numeric: tabular-nums; }
pre { font-size: 12.5px; line-height: 1.35; overflow-x: auto; background: var(--code); padding: 0.8rem; }
div.pictures { display: flex; flex-wrap: wrap; gap: 1rem; }
div.pictures > div { overflow-x: auto; max-width: 100%; }
div.pictures svg { display: block; min-width: 480px; }
div.pictures.panels svg { min-width: 0; }
div.tiles { display: flex; flex-wrap: wrap; gap: 0.5rem; }
@media (max-width: 600px) {
  th { padding-right: 1rem; }
  body { margin: 1rem auto; }
  div.pictures svg { min-width: 0; }
  svg .share { display: none; }
  svg .count { font-size: 15px; transform: translateY(5px); }
}
</style>
)html";

}  // namespace

std::string html_report(const std::string& title, const std::string& result, const std::vector<Section>& sections) {
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<title>" +
                    escaped(title) + "</title>\n" + head + "</head>\n<body>\n<h1>" + escaped(title) +
                    "</h1>\n<p class=\"result\">" + escaped(result) + "</p>\n";
  for (const Section& section : sections) {
    out += "<section>\n<h2>" + escaped(section.title) + "</h2>\n";
    if (!section.rows.empty()) {
      out += "<table>\n";
      for (const auto& [name, value] : section.rows)
        out += "<tr><th scope=\"row\">" + escaped(name) + "</th><td>" + escaped(value) + "</td></tr>\n";
      out += "</table>\n";
    }
    if (!section.pictures.empty()) {
      // Several are panels, which shrink with the page; one alone keeps its size.
      out += section.pictures.size() > 1 ? "<div class=\"pictures panels\">\n" : "<div class=\"pictures\">\n";
      for (const std::string& picture : section.pictures) out += "<div>" + picture + "</div>\n";
      out += "</div>\n";
    }
    for (const Tiles& tiles : section.tiles) {
      out += "<h3>" + escaped(tiles.heading) + "</h3>\n<div class=\"tiles\">\n";
      for (const std::string& picture : tiles.pictures) out += picture;
      out += "</div>\n";
    }
    if (!section.text.empty()) out += "<pre>" + escaped(section.text) + "</pre>\n";
    out += "</section>\n";
  }
  return out + "</body>\n</html>\n";
}

std::vector<std::pair<std::string, std::string>> machine_rows() {
  std::vector<std::pair<std::string, std::string>> rows;
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line);)
    if (line.starts_with("model name")) {
      const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (value != std::string::npos) rows.emplace_back("Processor", line.substr(value));
      break;
    }
  rows.emplace_back("Processors", std::to_string(std::thread::hardware_concurrency()));
#ifdef _OPENMP
  rows.emplace_back("Threads", std::to_string(omp_get_max_threads()));
#else
  rows.emplace_back("Threads", "1");
#endif
  utsname system{};
  if (::uname(&system) == 0)
    rows.emplace_back("System", std::string(system.sysname) + " " + system.release + " " + system.machine);
  return rows;
}

}  // namespace tessera::runtime
