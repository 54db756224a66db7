#include "tests/onnx_export/onnx_reader.hpp"

#include <functional>
#include <stdexcept>

namespace tessera::test {
namespace {

struct Field {
  int number = 0;
  std::int64_t value = 0;  ///< of a varint
  std::string_view bytes;  ///< of all else
};

std::uint64_t varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) break;
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a number does not end");
}

void each(std::string_view message, const std::function<void(const Field&)>& visit) {
  while (!message.empty()) {
    const std::uint64_t key = varint(message), kind = key & 7;
    Field field{static_cast<int>(key >> 3), 0, {}};
    if (kind == 0) {
      field.value = static_cast<std::int64_t>(varint(message));
    } else {
      if (kind != 2 && kind != 5) throw std::runtime_error("a field is of an unknown kind");
      const std::uint64_t size = kind == 2 ? varint(message) : 4;
      if (size > message.size()) throw std::runtime_error("a field is longer than its message");
      field.bytes = message.substr(0, size);
      message.remove_prefix(size);
    }
    visit(field);
  }
}

OnnxNode node(std::string_view bytes) {
  OnnxNode n;
  each(bytes, [&](const Field& f) {
    if (f.number == 1) n.inputs.emplace_back(f.bytes);
    if (f.number == 2) n.outputs.emplace_back(f.bytes);
    if (f.number == 3) n.name = f.bytes;
    if (f.number == 4) n.op = f.bytes;
  });
  return n;
}

OnnxTensor tensor(std::string_view bytes) {
  OnnxTensor t;
  each(bytes, [&](const Field& f) {
    if (f.number == 1) t.shape.push_back(f.value);
    if (f.number == 2) t.type = f.value;
    if (f.number == 8) t.name = f.bytes;
    if (f.number == 9) t.raw = f.bytes;
    if (f.number == 13) {
      std::string key;
      each(f.bytes, [&](const Field& entry) { entry.number == 1 ? key = entry.bytes : t.external[key] = entry.bytes; });
    }
  });
  return t;
}

OnnxValue value(std::string_view bytes) {
  OnnxValue v;
  const auto dim = [&](const Field& f) {
    each(f.bytes,
         [&](const Field& d) { v.shape.push_back(d.number == 1 ? std::to_string(d.value) : std::string(d.bytes)); });
  };
  each(bytes, [&](const Field& f) {
    if (f.number == 1) v.name = f.bytes;
    if (f.number != 2) return;
    each(f.bytes, [&](const Field& type) {
      each(type.bytes, [&](const Field& of_tensor) {
        if (of_tensor.number == 2) each(of_tensor.bytes, dim);
      });
    });
  });
  return v;
}

}  // namespace

OnnxFile read_onnx(std::string_view bytes) {
  OnnxFile file;
  each(bytes, [&](const Field& f) {
    if (f.number == 1) file.ir_version = f.value;
    if (f.number == 8)
      each(f.bytes, [&](const Field& opset) {
        if (opset.number == 2) file.opset = opset.value;
      });
    if (f.number == 14) {
      std::string key;
      each(f.bytes, [&](const Field& entry) {
        if (entry.number == 1) key = entry.bytes;
        if (entry.number == 2) file.metadata[key] = entry.bytes;
      });
    }
    if (f.number != 7) return;
    each(f.bytes, [&](const Field& g) {
      if (g.number == 1) file.nodes.push_back(node(g.bytes));
      if (g.number == 2) file.graph = g.bytes;
      if (g.number == 5) file.initializers.push_back(tensor(g.bytes));
      if (g.number == 11) file.inputs.push_back(value(g.bytes));
      if (g.number == 12) file.outputs.push_back(value(g.bytes));
    });
  });
  return file;
}

}  // namespace tessera::test
