// Reads an ONNX file as far as tests ask, by onnx.proto's field numbers; throws std::runtime_error for bytes that are
// no protobuf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

struct OnnxTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t type = 0;
  std::string_view raw;
  std::map<std::string, std::string> external;  ///< in the place of `raw`: location, offset and length
};
struct OnnxNode {
  std::string name, op;
  std::vector<std::string> inputs, outputs;
};
/// A value that goes in or out; a dim without a size is its name.
struct OnnxValue {
  std::string name;
  std::vector<std::string> shape;
};
struct OnnxFile {
  std::int64_t ir_version = 0, opset = 0;
  std::string graph;
  std::map<std::string, std::string> metadata;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValue> inputs, outputs;
};

/// `bytes` must outlive the result.
OnnxFile read_onnx(std::string_view bytes);

}  // namespace tessera::test
