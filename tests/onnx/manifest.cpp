#include "tests/onnx/manifest.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "tests/onnx/row.hpp"

namespace tessera::test {

namespace {

/// Of "in.Q:[2, 4, 24] in.K:[2, 6, 24] out.Y:[2, 4, 24]" those that begin with the prefix.
std::vector<ManifestTensor> tensors(const std::string& text, const std::string& prefix) {
  std::vector<ManifestTensor> all;
  for (std::size_t colon = 0; (colon = text.find(":[", colon)) != std::string::npos; ++colon) {
    const std::size_t before = text.find_last_of(" \n", colon), begin = before == std::string::npos ? 0 : before + 1;
    ManifestTensor tensor{text.substr(begin, colon - begin), {}};
    if (!tensor.key.starts_with(prefix)) continue;
    std::stringstream dims(text.substr(colon + 2, text.find(']', colon) - colon - 2));
    for (std::string dim; std::getline(dims, dim, ',');) tensor.shape.push_back(std::stoll(dim));
    all.push_back(std::move(tensor));
  }
  return all;
}

/// In a table's cell: on one line, and without what would end the cell.
std::string code(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "`" + text + "`";
}

/// At most 120 characters a line where that can be, broken at spaces that are not within a string.
std::string in_lines(std::string text) {
  constexpr std::size_t width = 120;
  std::size_t begin = 0, space = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') quoted = !quoted;
    if (text[at] == '\n') text[at] = ' ';
    if (at - begin >= width && space > begin) {
      text[space] = '\n';
      begin = space + 1;
    }
    if (text[at] == ' ' && !quoted) space = at;
  }
  return text;
}

/// What is too long for a cell stands behind the tables, below the name of its row.
class Cells {
 public:
  std::string of(const std::string& row, const std::string& text, const std::string& language) {
    constexpr std::size_t longest = 160;
    std::string cell = code(text);
    if (cell.size() <= longest) return cell;
    if (row != last_) behind += "\n### " + row + "\n";
    behind += "\n```" + language + "\n" + in_lines(text) + "\n```\n";
    last_ = row;
    return "[below](#" + row + ")";
  }

  std::string behind;

 private:
  std::string last_;
};

}  // namespace

std::vector<ManifestRow> read_manifest(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<std::string> records;
  std::string line;
  std::getline(file, line);  // the heading
  // A value that is a whole tensor goes on over several lines.
  while (std::getline(file, line)) {
    if (line.starts_with("test_") || records.empty())
      records.push_back(line);
    else
      records.back() += "\n" + line;
  }
  std::vector<ManifestRow> rows;
  for (const std::string& record : records) {
    const std::size_t first = record.find('\t'), last = record.rfind('\t');
    if (first == last) throw std::runtime_error(path.string() + " has a row that is not three columns: " + record);
    const std::string rest = record.substr(last + 1);
    rows.push_back({record.substr(0, first), record.substr(first + 1, last - first - 1), tensors(rest, "in."),
                    tensors(rest, "out.")});
  }
  return rows;
}

std::string coverage_page(const std::vector<ManifestRow>& manifest) {
  std::map<std::string, std::string> declared, reasons;
  for (const Row& row : onnx_rows()) declared[row.name] = row.declaration;
  for (const UncoveredRow& row : uncovered_onnx_rows()) reasons[row.name] = row.reason;
  std::string covered, uncovered;
  Cells cells;
  int count = 0;
  for (const ManifestRow& row : manifest) {
    if (declared.contains(row.name)) {
      const std::string nodes = cells.of(row.name, row.nodes, "text");
      covered += "| " + row.name + " | " + nodes + " | " + cells.of(row.name, declared.at(row.name), "cpp") + " |\n";
      ++count;
    } else {
      uncovered += "| " + row.name + " | " + cells.of(row.name, row.nodes, "text") + " | " + reasons[row.name] + " |\n";
    }
  }
  std::ostringstream page;
  page << R"(# ONNX's operator tests in the DSL

ONNX publishes tests of its operators: inputs, attributes and outputs. Each row below is said in the DSL, generated for
every instruction set, compiled and run on the published numbers, which it has to give to 1e-5 of the largest of them
(tests/onnx). `B` is the batch: a tensor that begins with it takes its own first axis for the batch, and the others are
parameters of the model. What ONNX hands over as a tensor of integers (axes, shapes, repeats, lengths of a split) is
part of the declaration.

)" << count
       << " of " << manifest.size()
       << R"( rows are covered. This page is written by `onnx_page MANIFEST.tsv`, and a test compares it.

| row | ONNX | in the DSL |
|---|---|---|
)" << covered
       << R"(
Not covered:

| row | ONNX | why |
|---|---|---|
)" << uncovered;
  if (!cells.behind.empty()) page << "\n## Rows that are too long for a table\n" << cells.behind;
  return page.str();
}

}  // namespace tessera::test
