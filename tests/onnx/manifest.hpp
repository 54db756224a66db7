// golden/onnx/MANIFEST.tsv: ONNX's operator tests, and the table of docs/reference/onnx-coverage.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::test {

/// A tensor of the row's file: "in.x", [3, 4].
struct ManifestTensor {
  std::string key;
  std::vector<std::int64_t> shape;
};

struct ManifestRow {
  std::string name;
  std::string nodes;  ///< "Softmax(x -> y; axis=1)"
  std::vector<ManifestTensor> inputs, outputs;
};

/// Throws std::runtime_error when it cannot be read.
std::vector<ManifestRow> read_manifest(const std::filesystem::path& path);

/// The text of docs/reference/onnx-coverage.md: every row of the manifest with its declaration, or why it has none.
std::string coverage_page(const std::vector<ManifestRow>& manifest);

}  // namespace tessera::test
