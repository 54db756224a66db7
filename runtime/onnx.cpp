#include "runtime/onnx.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/file.hpp"
#include "runtime/matching.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/text_reader.hpp"

namespace tessera::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers are copied as they lie in memory");

constexpr std::int64_t float_type = 1, int32_type = 6, int64_type = 7;  // TensorProto.DataType

/// A message of protobuf's: fields by their numbers in onnx.proto.
class Message {
 public:
  const std::string& text() const { return text_; }

  Message& number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    begin(field, value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.text_); }
  /// Whole fields.
  Message& raw(std::string_view fields) {
    text_ += fields;
    return *this;
  }
  /// A field of so many bytes, which come behind it.
  Message& begin(int field, std::uint64_t size) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(size);
    return *this;
  }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

Message tensor(const std::string& name, const Shape& shape, std::int64_t type) {
  Message tensor;
  for (const std::int64_t dim : shape) tensor.number(1, dim);
  return tensor.number(2, type).bytes(8, name);
}

/// An initializer of GraphProto, up to its numbers: `bytes` of them, which are the last of the field.
std::string initializer(const std::string& name, const Shape& shape, std::int64_t type, std::uint64_t bytes) {
  const Message front = tensor(name, shape, type).begin(9, bytes);
  return Message().begin(5, front.text().size() + bytes).text() + front.text();
}

/// The same with its numbers in another file, from byte `at` on (ONNX's external data).
std::string external_initializer(const std::string& name, const Shape& shape, std::uint64_t bytes,
                                 const std::string& file, std::uint64_t at) {
  Message t = tensor(name, shape, float_type);
  const auto entry = [&](std::string_view key, const std::string& value) {
    t.message(13, Message().bytes(1, key).bytes(2, value));
  };
  entry("location", file);
  entry("offset", std::to_string(at));
  entry("length", std::to_string(bytes));
  return Message().message(5, t.number(14, 1)).text();
}

/// The text with the layer's number where it has "{}", with 8 more where it has "{8}", and with 1 more than twice the
/// number where it has "{1:2}".
std::string of_layer(std::string text, std::int64_t layer) {
  const std::size_t begin = text.find('{'), end = text.find('}', begin);
  if (end == std::string::npos) return text;
  std::int64_t first = 0, step = 1;
  const char* const colon = std::find(text.data() + begin, text.data() + end, ':');
  std::from_chars(text.data() + begin + 1, colon, first);
  if (colon != text.data() + end) std::from_chars(colon + 1, text.data() + end, step);
  return text.replace(begin, end + 1 - begin, std::to_string(first + step * layer));
}

template <class Number>
Number number(std::string_view word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) fail("'", word, "' is no number of an ONNX text");
  return value;
}

using Words = std::vector<std::string>;

/// The statements of a model's text as their words.
std::vector<Words> statements(const char* text) {
  std::vector<Words> all;
  TextReader in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (line[0] != ' ' || all.empty()) all.emplace_back();
    TextReader words(line);
    for (std::string word; words >> word;) all.back().push_back(word);
  }
  return all;
}

/// A GraphProto made of a model's text, without the parameters.
class Structure {
 public:
  explicit Structure(const Model& model) {
    graph_.bytes(2, model.name);
    const std::vector<Words> all = statements(model.onnx);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i][0] != "layers") {
        add(all[i]);
        continue;
      }
      const std::size_t first = i + 1;
      while (all.at(i)[0] != "end") ++i;
      for (layer_ = 0; layer_ < number<std::int64_t>(all[first - 1].at(1)); ++layer_)
        for (std::size_t k = first; k < i; ++k) add(all[k]);
    }
  }

  const std::string& text() const { return graph_.text(); }
  bool reads(const std::string& parameter) const { return read_.contains(parameter); }

 private:
  void add(const Words& words) {
    if (words.at(1) == "=")
      node(words);
    else if (words[0] == "input" || words[0] == "output")
      interface(words);
    else if (words[0] == "carry")
      alias_[of_layer(words[1], layer_)] =
          layer_ == 0 ? value(words.at(2)) : resolved(of_layer(words.at(3), layer_ - 1));
    else
      constant(words);
  }

  const std::string& resolved(const std::string& name) const {
    const auto known = alias_.find(name);
    return known == alias_.end() ? name : known->second;
  }
  std::string value(const std::string& name) const { return resolved(of_layer(name, layer_)); }

  void node(const Words& words) {
    const std::string name = of_layer(words[0], layer_);
    Message node;
    for (std::size_t i = 3; i < words.size(); ++i)
      if (!is_attribute(words[i])) {
        const std::string operand = value(words[i]);
        read_.insert(operand);
        node.bytes(1, operand);
      }
    node.bytes(2, name).bytes(3, name).bytes(4, words.at(2));
    for (std::size_t i = 3; i < words.size(); ++i)
      if (is_attribute(words[i])) node.message(5, attribute(words[i]));
    graph_.message(1, node);
  }

  static bool is_attribute(const std::string& word) { return word.find('=') != std::string::npos; }

  static Message attribute(const std::string& word) {
    const std::size_t sign = word.find('=');
    const std::string key = word.substr(0, sign), value = word.substr(sign + 1);
    Message m;
    m.bytes(1, key);
    if (value.front() == '"') return m.bytes(4, value.substr(1, value.size() - 2)).number(20, 3);
    if (value.back() == 'f') return m.real(2, number<float>(value.substr(0, value.size() - 1))).number(20, 1);
    if (value.front() != '[') return m.number(3, number<std::int64_t>(value)).number(20, 2);
    TextReader list(value.substr(1, value.size() - 2));
    for (std::string entry; std::getline(list, entry, ',');) m.number(8, number<std::int64_t>(entry));
    return m.number(20, 7);
  }

  void interface(const Words& words) {
    Message shape;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const bool known = words[i].find_first_not_of("0123456789") == std::string::npos;
      shape.message(1, known ? Message().number(1, number<std::int64_t>(words[i])) : Message().bytes(2, words[i]));
    }
    const Message type = Message().number(1, words.at(2) == "float" ? float_type : int32_type).message(2, shape);
    graph_.message(words[0] == "input" ? 11 : 12, Message().bytes(1, words[1]).message(2, Message().message(1, type)));
  }

  void constant(const Words& words) {
    std::size_t i = 2;
    Shape shape;
    for (; words.at(i) != ":"; ++i) shape.push_back(number<std::int64_t>(words[i]));
    const bool real = words[0] == "float";
    std::string numbers;
    const auto put = [&](auto value) { numbers.append(reinterpret_cast<const char*>(&value), sizeof value); };
    for (++i; i < words.size(); ++i) real ? put(number<float>(words[i])) : put(number<std::int64_t>(words[i]));
    graph_.raw(initializer(words[1], shape, real ? float_type : int64_type, numbers.size())).raw(numbers);
  }

  Message graph_;
  std::int64_t layer_ = 0;
  std::map<std::string, std::string> alias_;  ///< of what layers carry: the values themselves
  std::set<std::string> read_;
};

/// What the file says beside the graph: fields of ModelProto.
Message description(const Model& model, const Usage& usage) {
  Safetensors beside;
  usage.write(beside, model);
  std::map<std::string, std::string> metadata = beside.metadata;
  metadata["declaration_hash"] = runtime::text(std::hex, model.declaration_hash);
  metadata["model"] = model.name;
  metadata["input_height"] = std::to_string(model.image_shape[1]);
  metadata["input_width"] = std::to_string(model.image_shape[2]);
  metadata["outputs"] = model.outputs_are_probabilities ? "probabilities" : "logits";
  Message m;
  m.number(1, 8).bytes(2, "tessera").message(8, Message().bytes(1, "").number(2, 17));
  for (const auto& [key, value] : metadata) m.message(14, Message().bytes(1, key).bytes(2, value));
  return m;
}

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

std::filesystem::path onnx_data(std::filesystem::path path) { return path += ".data"; }

bool export_onnx(const std::filesystem::path& path, const Model& model, const float* parameters, const Usage& usage,
                 std::uint64_t limit) {
  if (!model.onnx) fail("this program was emitted without the words of ONNX: emit it anew");
  const Structure structure(model);
  struct Row {
    std::string name;
    Shape shape;
    std::span<const float> numbers;
  };
  std::vector<Row> rows;
  std::vector<std::string> heads;
  std::uint64_t size = structure.text().size();
  for (const tessera_parameter& row : model.parameters) {
    if (!structure.reads(row.name)) continue;
    const Shape shape = shape_of(row);
    const std::span numbers(parameters + row.offset, static_cast<std::size_t>(elements(shape)));
    rows.push_back({row.name, shape, numbers});
    heads.push_back(initializer(row.name, shape, float_type, numbers.size_bytes()));
    size += heads.back().size() + numbers.size_bytes();
  }
  const bool beside = size + description(model, usage).begin(7, size).text().size() > limit;
  const std::filesystem::path data = onnx_data(path);
  std::vector<std::span<const std::uint8_t>> parts;
  if (beside) {
    size = structure.text().size();
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < rows.size(); at += rows[i++].numbers.size_bytes()) {
      heads[i] = external_initializer(rows[i].name, rows[i].shape, rows[i].numbers.size_bytes(), data.filename(), at);
      size += heads[i].size();
    }
  }
  for (const Row& row : rows)
    for (const float number : row.numbers)
      if (!std::isfinite(number)) fail("cannot write ", path.string(), ": '", row.name, "' holds ", number);
  const auto numbers = [&](const Row& row) {
    parts.emplace_back(reinterpret_cast<const std::uint8_t*>(row.numbers.data()), row.numbers.size_bytes());
  };
  if (beside) {
    check_target(path);
    for (const Row& row : rows) numbers(row);
    write_file(data, parts);
    parts.clear();
  }
  const std::string front = description(model, usage).begin(7, size).text() + structure.text();
  parts.push_back(as_bytes(front));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    parts.push_back(as_bytes(heads[i]));
    if (!beside) numbers(rows[i]);
  }
  write_file(path, parts);
  return beside;
}

}  // namespace tessera::runtime
