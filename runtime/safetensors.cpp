#include "runtime/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "runtime/error.hpp"
#include "runtime/half.hpp"

namespace tessera::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers are copied as they lie in memory");

using Json = nlohmann::json;

constexpr std::uint64_t longest_header = 100'000'000;  // the reference implementation's limit

constexpr std::array<std::pair<const char*, int>, 15> dtypes{{{"BOOL", 1},
                                                              {"U8", 1},
                                                              {"I8", 1},
                                                              {"F8_E5M2", 1},
                                                              {"F8_E4M3", 1},
                                                              {"I16", 2},
                                                              {"U16", 2},
                                                              {"F16", 2},
                                                              {"BF16", 2},
                                                              {"I32", 4},
                                                              {"U32", 4},
                                                              {"F32", 4},
                                                              {"I64", 8},
                                                              {"U64", 8},
                                                              {"F64", 8}}};

/// Bytes of one number, 0 for an unknown type.
int dtype_bytes(const std::string& dtype) {
  for (const auto& [name, bytes] : dtypes)
    if (dtype == name) return bytes;
  return 0;
}

struct Entry {
  std::optional<std::string> dtype;
  std::optional<Shape> shape;
  std::optional<std::vector<std::int64_t>> offsets;
};

/// Walks through the header without building a tree of it, so that depth and size of a hostile one cost nothing, and
/// accepts only {name: {dtype, shape, data_offsets}, "__metadata__": {key: text}}.
class Header : public nlohmann::json_sax<Json> {
 public:
  explicit Header(std::string where) : where_(std::move(where)) {}

  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("a truth value"); }
  bool number_float(number_float_t, const string_t&) override { return misplaced("a fraction"); }
  bool binary(binary_t&) override { return misplaced("binary data"); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) fail(place(), " holds a number that is too large");
    return integer(static_cast<std::int64_t>(value));
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata()) {
      metadata[field_] = value;
    } else if (depth_ == 2 && field_ == "dtype") {
      entries[name_].dtype = value;
    } else {
      return misplaced("a text");
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 2 || list_) return misplaced("an object");
    if (depth_ == 1 && !in_metadata()) entries.try_emplace(name_);
    ++depth_;
    fields_.clear();
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      name_ = value;
      field_.clear();
      if (!names_.insert(value).second) fail(where_, ": the header names ", printable(value), " twice");
    } else {
      field_ = value;
      if (!fields_.insert(value).second) fail(place(), " has ", printable(value), " twice");
      if (!in_metadata() && value != "dtype" && value != "shape" && value != "data_offsets")
        fail(place(), " has the unknown field ", printable(value));
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 2 || in_metadata() || list_ || field_ == "dtype") return misplaced("a list");
    Entry& entry = entries[name_];
    list_ = field_ == "shape" ? &entry.shape.emplace() : &entry.offsets.emplace();
    return true;
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(where_, ": the header is not valid JSON (at byte ", position, " of it)");
  }

 private:
  bool in_metadata() const { return name_ == "__metadata__"; }
  std::string place() const {
    if (depth_ < 1 || name_.empty()) return where_ + ": the header";
    return where_ + ": " + (in_metadata() ? std::string("__metadata__") : "tensor " + printable(name_));
  }
  bool misplaced(const char* what) const {
    fail(place(), " has ", what, field_.empty() ? "" : " in " + printable(field_), " where none may stand");
  }
  bool integer(std::int64_t value) {
    if (!list_) return misplaced("a number");
    if (value < 0) fail(place(), " has the negative number ", value, " in ", printable(field_));
    // No tensor has more dims; without a bound one list could be as long as the header.
    if (list_->size() == 64) fail(place(), " has more than 64 numbers in ", printable(field_));
    list_->push_back(value);
    return true;
  }

  std::string where_, name_, field_;
  std::set<std::string> names_, fields_;
  std::vector<std::int64_t>* list_ = nullptr;
  int depth_ = 0;
};

template <class Number>
Tensor tensor_of(const char* dtype, Shape shape, std::span<const Number> numbers) {
  if (elements(shape) != static_cast<std::int64_t>(numbers.size()))
    fail("a tensor of shape ", printed(shape), " cannot be made of ", numbers.size(), " numbers");
  const auto* first = reinterpret_cast<const std::uint8_t*>(numbers.data());
  return {dtype, std::move(shape), Bytes(first, first + numbers.size_bytes())};
}

/// Numbers that are stored as `Stored`, a part of them after the other.
template <class Stored, class Wanted, class Convert>
void convert(const TensorBytes& bytes, std::span<Wanted> to, Convert converted) {
  std::vector<Stored> part(std::min<std::size_t>(to.size(), std::size_t{1} << 14));
  for (std::size_t at = 0; at < to.size(); at += part.size()) {
    part.resize(std::min(part.size(), to.size() - at));
    bytes.read(at * sizeof(Stored), {reinterpret_cast<std::uint8_t*>(part.data()), part.size() * sizeof(Stored)});
    std::ranges::transform(part, to.begin() + static_cast<std::ptrdiff_t>(at),
                           [&](Stored value) { return static_cast<Wanted>(converted(value)); });
  }
}

template <class Stored, class Wanted>
std::vector<Wanted> numbers_of(const TensorBytes& bytes) {
  std::vector<Wanted> numbers(bytes.size() / sizeof(Stored));
  convert<Stored>(bytes, std::span(numbers), std::identity());
  return numbers;
}

template <class Wanted>
void read_reals(const Tensor& tensor, std::span<Wanted> to) {
  if (tensor.dtype == "F64") return convert<double>(tensor.bytes, to, std::identity());
  if (tensor.dtype == "F16") return convert<std::uint16_t>(tensor.bytes, to, from_float16);
  if (tensor.dtype == "BF16") return convert<std::uint16_t>(tensor.bytes, to, from_bfloat16);
  if (tensor.dtype != "F32")
    fail("a tensor of type ", tensor.dtype, " was found where F32, F16, BF16 or F64 is needed");
  if constexpr (std::is_same_v<Wanted, float>)
    tensor.bytes.read(0, {reinterpret_cast<std::uint8_t*>(to.data()), to.size_bytes()});
  else
    convert<float>(tensor.bytes, to, std::identity());
}

template <class Wanted>
std::vector<Wanted> reals_of(const Tensor& tensor) {
  const int bytes = tensor.is_real() ? dtype_bytes(tensor.dtype) : 1;
  std::vector<Wanted> numbers(tensor.bytes.size() / static_cast<std::size_t>(bytes));
  read_reals(tensor, std::span(numbers));
  return numbers;
}

}  // namespace

std::string printable(const std::string& name) {
  std::string shown = "'";
  for (const char c : name.substr(0, 100)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return shown + (name.size() > 100 ? "...'" : "'");
}

std::string printed(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

std::int64_t elements(const Shape& shape) {
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) return -1;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    if (product > INT64_MAX / dim) return -1;
    product *= dim;
  }
  return product;
}

Tensor Tensor::of(Shape shape, std::span<const float> numbers) { return tensor_of("F32", std::move(shape), numbers); }
Tensor Tensor::of(Shape shape, std::span<const double> numbers) { return tensor_of("F64", std::move(shape), numbers); }
Tensor Tensor::of(Shape shape, std::span<const std::int64_t> numbers) {
  return tensor_of("I64", std::move(shape), numbers);
}

Tensor Tensor::of(const std::string& dtype, Shape shape, std::span<const float> numbers) {
  if (dtype == "F32") return of(std::move(shape), numbers);
  if (dtype != "F16" && dtype != "BF16") fail("numbers cannot be written as ", printable(dtype));
  std::vector<std::uint16_t> halves;
  for (const float number : numbers) halves.push_back(dtype == "F16" ? to_float16(number) : to_bfloat16(number));
  return tensor_of(dtype.c_str(), std::move(shape), std::span<const std::uint16_t>(halves));
}

void TensorBytes::read(std::size_t at, std::span<std::uint8_t> to) const {
  if (file_)
    file_->read(begin_ + at, to);
  else
    std::ranges::copy(std::span(memory_).subspan(at, to.size()), to.begin());
}

std::span<const std::uint8_t> TensorBytes::all(Bytes& room) const {
  if (!file_) return memory_;
  room.resize(size_);
  read(0, room);
  return room;
}

TensorBytes TensorBytes::part(std::size_t at, std::size_t size) const {
  if (file_) return {file_, begin_ + at, size};
  Bytes bytes(size);
  read(at, bytes);
  return bytes;
}

bool Tensor::is_real() const { return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

std::vector<float> Tensor::floats() const { return reals_of<float>(*this); }

void Tensor::read(std::span<float> to) const { read_reals(*this, to); }

std::vector<double> Tensor::doubles() const { return reals_of<double>(*this); }

std::vector<std::int64_t> Tensor::integers() const {
  if (dtype == "I64") return numbers_of<std::int64_t, std::int64_t>(bytes);
  if (dtype == "I32") return numbers_of<std::int32_t, std::int64_t>(bytes);
  if (dtype == "U8") return numbers_of<std::uint8_t, std::int64_t>(bytes);
  fail("a tensor of type ", dtype, " was found where I64, I32 or U8 is needed");
}

const Tensor& Safetensors::at(const std::string& name) const {
  const auto found = tensors.find(name);
  if (found == tensors.end()) fail(where, ": there is no tensor ", printable(name));
  return found->second;
}

namespace {

/// Of a content of so many bytes, of which `read` gives those from a place on: first the header, and the numbers only
/// after all that it says of them is found to fit. `take(name, at, size)` gives a tensor's bytes, which lie there.
template <class Read, class Take>
Safetensors safetensors_of(std::uint64_t size, const std::string& where, const Read& read, const Take& take) {
  std::array<std::uint8_t, 9> first{};
  read(0, std::span(first).first(std::min<std::uint64_t>(size, first.size())));
  // The length of a header can begin with the same bytes; its header follows, and begins with a brace.
  if (first[8] != '{' && ((first[0] == 'P' && first[1] == 'K') || (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5)))
    fail(where,
         " is a pickle of PyTorch, which may run any code when read, and is not read; convert it where you trust ",
         "it: python3 -c \"import sys, torch, safetensors.torch as s; s.save_file({k: v.contiguous() for k, v in ",
         "torch.load(sys.argv[1], weights_only=True).items()}, sys.argv[2])\" IN.pt OUT.safetensors");
  if (size < 8) fail(where, " is not a safetensors file: it has ", size, " bytes, the header alone needs 8");
  std::array<std::uint8_t, 8> length_bytes{};
  std::copy_n(first.begin(), length_bytes.size(), length_bytes.begin());
  const auto header_length = std::bit_cast<std::uint64_t>(length_bytes);
  if (header_length > longest_header && first[0] == '{')
    fail(where,
         " is not a safetensors file but JSON; where it is the index of a checkpoint in several files, join these: ",
         "python3 -c \"import sys, safetensors.torch as s; s.save_file({k: v for f in sys.argv[2:] for k, v in ",
         "s.load_file(f).items()}, sys.argv[1])\" OUT.safetensors IN-00001-of-00002.safetensors ...");
  if (header_length > longest_header)
    fail(where, " is not a safetensors file: its header would be ", header_length, " bytes long, more than the ",
         longest_header, " that are allowed");
  if (header_length > size - 8)
    fail(where, " is truncated: its header is ", header_length, " bytes long, the file has ", size - 8,
         " after the length");
  Bytes text(header_length);
  read(8, std::span(text));
  if (text.empty() || text[0] != '{') fail(where, " is not a safetensors file: its header does not start with '{'");
  const std::uint64_t data = size - 8 - header_length;

  // The parser takes a zero byte for the end of its input and would not look at what follows.
  if (const auto zero = std::find(text.begin(), text.end(), std::uint8_t{0}); zero != text.end())
    fail(where, ": the header is not valid JSON (at byte ", zero - text.begin() + 1, " of it)");
  Header header(where);
  Json::sax_parse(text.begin(), text.end(), &header);

  Safetensors result;
  result.where = where;
  result.metadata = std::move(header.metadata);
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (auto& [name, entry] : header.entries) {
    const std::string place = where + ": tensor " + printable(name);
    if (!entry.dtype) fail(place, " has no 'dtype'");
    if (!entry.shape) fail(place, " has no 'shape'");
    if (!entry.offsets) fail(place, " has no 'data_offsets'");
    const int size = dtype_bytes(*entry.dtype);
    if (size == 0) fail(place, " has the unknown type ", printable(*entry.dtype));
    const std::int64_t count = elements(*entry.shape);
    if (count < 0 || count > INT64_MAX / size)
      fail(place, " has the shape ", printed(*entry.shape), ", which is too large");
    if (entry.offsets->size() != 2) fail(place, " has ", entry.offsets->size(), " data offsets instead of 2");
    const std::int64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    if (begin > end) fail(place, " begins at byte ", begin, " and ends before it, at byte ", end);
    if (static_cast<std::uint64_t>(end) > data)
      fail(place, " ends at byte ", end, " of the data, the file has ", data, " (is it truncated?)");
    if (end - begin != count * size)
      fail(place, " of type ", *entry.dtype, " and shape ", printed(*entry.shape), " needs ", count * size,
           " bytes, its data offsets give ", end - begin);
    ranges.emplace_back(begin, end);
    // The bytes wait until it is sure that none belongs to two tensors: overlapping ones could copy the file many
    // times.
    result.tensors.emplace(name, Tensor{std::move(*entry.dtype), std::move(*entry.shape), {}});
  }
  std::sort(ranges.begin(), ranges.end());
  std::int64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin < at) fail(where, ": two tensors overlap at byte ", begin, " of the data");
    if (begin > at) fail(where, ": bytes ", at, " to ", begin, " of the data belong to no tensor");
    at = end;
  }
  if (static_cast<std::uint64_t>(at) != data)
    fail(where, ": ", data - static_cast<std::uint64_t>(at), " bytes after the last tensor belong to no tensor");
  for (auto& [name, tensor] : result.tensors) {
    const auto& offsets = *header.entries[name].offsets;
    tensor.bytes = take(name, 8 + header_length + static_cast<std::uint64_t>(offsets[0]),
                        static_cast<std::size_t>(offsets[1] - offsets[0]));
  }
  return result;
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::uint8_t> content, const std::string& where) {
  return safetensors_of(
      content.size(), where,
      [&](std::uint64_t at, std::span<std::uint8_t> to) {
        std::ranges::copy(content.subspan(at, to.size()), to.begin());
      },
      [&](const std::string&, std::uint64_t at, std::size_t size) {
        const std::span<const std::uint8_t> bytes = content.subspan(at, size);
        return TensorBytes(Bytes(bytes.begin(), bytes.end()));
      });
}

Safetensors read_safetensors(const std::filesystem::path& path, std::uint64_t limit) {
  const auto file = std::make_shared<const InputFile>(path);
  if (file->size() > limit) fail(file->where(), " is longer than the ", limit, " bytes that are accepted here");
  return safetensors_of(
      file->size(), file->where(), [&](std::uint64_t at, std::span<std::uint8_t> to) { file->read(at, to); },
      [&](const std::string&, std::uint64_t at, std::size_t size) { return TensorBytes(file, at, size); });
}

SafetensorsHeader read_safetensors_header(const InputFile& file) {
  SafetensorsHeader header;
  Safetensors content = safetensors_of(
      file.size(), file.where(), [&](std::uint64_t at, std::span<std::uint8_t> to) { file.read(at, to); },
      [&](const std::string& name, std::uint64_t at, std::size_t) {
        header.tensors[name].begin = at;
        return TensorBytes();
      });
  for (auto& [name, tensor] : content.tensors) {
    header.tensors[name].dtype = std::move(tensor.dtype);
    header.tensors[name].shape = std::move(tensor.shape);
  }
  header.metadata = std::move(content.metadata);
  return header;
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& path) {
  return read_safetensors_header(InputFile(path)).metadata;
}

bool can_hold(const std::string& text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& content,
                       const std::filesystem::path& keep) {
  std::map<std::string, Bytes> of_files;
  std::map<std::string, TensorView> views;
  for (const auto& [name, tensor] : content.tensors)
    views[name] = {tensor.dtype, tensor.shape, tensor.bytes.all(of_files[name])};
  write_safetensors(path, content.metadata, views, keep);
}

void write_safetensors(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata,
                       const std::map<std::string, TensorView>& tensors, const std::filesystem::path& keep) {
  // Not by way of a tree, whose destructor allocates and so ends the program where there is no memory.
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text = "{";
  const auto next = [&] { text += text.ends_with('{') ? "" : ","; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      next();
      text += quoted(key) + ":" + quoted(value);
    }
    text += "}";
  }
  std::vector<std::span<const std::uint8_t>> parts(2);
  std::size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::int64_t count = elements(tensor.shape);
    if (name == "__metadata__" || dtype_bytes(tensor.dtype) == 0 || count < 0 ||
        static_cast<std::size_t>(count) * static_cast<std::size_t>(dtype_bytes(tensor.dtype)) != tensor.bytes.size())
      fail("cannot write ", path.string(), ": tensor ", printable(name), " of type ", tensor.dtype, " and shape ",
           printed(tensor.shape), " cannot have ", tensor.bytes.size(), " bytes");
    next();
    text += quoted(name) + ":{\"dtype\":" + quoted(tensor.dtype) + ",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i ? "," : "") + std::to_string(tensor.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + tensor.bytes.size()) + "]}";
    at += tensor.bytes.size();
    parts.emplace_back(tensor.bytes);
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  parts[0] = {reinterpret_cast<const std::uint8_t*>(&length), 8};
  parts[1] = {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  write_file(path, parts, keep);
}

}  // namespace tessera::runtime
